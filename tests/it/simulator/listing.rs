//! Lists: limits, ranges, fields, tombstones and the many ways of saying no.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sierra_sync::simulator::{Kind, Nothing, Switches, Total};

use super::client::{Client, id, small_library};

fn ids(entries: &[Value]) -> Vec<u64> {
    entries.iter().map(id).collect()
}

#[tokio::test(start_paused = true)]
async fn a_keyset_walk_meets_every_record_once_in_ascending_order() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    for kind in Kind::ALL {
        let walked = ids(&client.sweep(kind.path(), "&deleted=false").await);
        assert!(walked.is_sorted());
        assert_eq!(walked, simulator.world(|world| world.ids(kind)));
    }
}

#[tokio::test(start_paused = true)]
async fn bibs_and_items_are_numbered_by_texts_and_patrons_by_integers() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    assert!(client.entries("/bibs").await[0]["id"].is_string());
    let item = &client.entries("/items?deleted=false").await[0];
    assert!(item["id"].is_string() && item["bibIds"][0].is_string());
    assert!(client.entries("/patrons").await[0]["id"].is_u64());
}

/// BR-031: the first page is not the whole.
#[tokio::test(start_paused = true)]
async fn without_a_limit_fifty_come_even_of_a_longer_id_list() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let all = simulator.world(|world| world.ids(Kind::Items));
    let list: Vec<String> = all.iter().map(u64::to_string).collect();
    assert_eq!(client.entries(&format!("/items?id={}", list.join(","))).await.len(), 50);
    assert_eq!(client.entries(&format!("/items?limit=2000&id={}", list.join(","))).await.len(), all.len());
}

#[tokio::test(start_paused = true)]
async fn date_ranges_are_closed_at_both_ends_and_conditions_add_up() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[5]);
    let updated = simulator.world(|world| world.true_record(Kind::Bibs, bib).unwrap().updated);
    let window = format!("/bibs?fields=id&updatedDate=[{updated:.0},{updated:.0}]");
    assert!(ids(&client.entries(&window).await).contains(&bib));
    assert_eq!(client.get(&format!("{window}&id=[{},{}]", bib + 1, bib + 1)).await.0, 404);
}

#[tokio::test(start_paused = true)]
async fn what_is_not_understood_is_refused_with_its_own_code() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    for (query, status, code) in [
        ("/bibs?updateDate=[2024-01-01T00:00:00Z,]", 400, 106),
        ("/bibs?expand=items", 400, 106),
        ("/bibs?bibIds=1000001", 400, 106),
        ("/bibs?updatedDate=[2024-01-01T00:00:00,]", 400, 101),
        ("/bibs?updatedDate=[2024-01-01T00:00:00.5Z,]", 400, 101),
        ("/bibs?deletedDate=[2024-01-01T00:00:00Z,]", 400, 101),
        ("/bibs?id=b1000001", 400, 101),
        ("/bibs?limit=0", 400, 101),
        ("/bibs?fields=id,holdings", 400, 108),
        ("/bibs?fields=id,%20deleted", 400, 108),
        ("/bibs?fields=,&deleted=true", 500, 103),
        ("/bibs/77", 404, 107),
        ("/bibs/b1000001x", 400, 101),
    ] {
        let (found, body) = client.get(query).await;
        assert_eq!((found, &body["code"], &body["httpStatus"]), (status, &json!(code), &json!(status)), "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_that_nothing_serves_is_a_404_without_code_107() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let answer = client.try_get("/holdings").await.unwrap();
    assert_eq!(answer.status(), 404);
    assert!(answer.body().starts_with(b"<!DOCTYPE"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_said_by_404_for_ranges_and_by_an_empty_page_for_deletes() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let (deletes, range, of_bibs) = (
        "/bibs?deleted=true&deletedDate=[1970-01-01,1970-01-02]",
        "/bibs?updatedDate=[2030-01-01T00:00:00Z,]",
        "/items?bibIds=5",
    );
    assert_eq!(client.get(deletes).await, (200, json!({"start": 0, "entries": []})));
    assert_eq!(client.get(range).await.0, 404);
    assert_eq!(client.get(of_bibs).await.0, 404);

    simulator.with(|simulator| {
        simulator.switches.empty_deletes = Nothing::NotFound;
        simulator.switches.empty_range = Nothing::EmptyPage;
    });
    assert_eq!(client.get(deletes).await.0, 404);
    assert_eq!(client.get(range).await, (200, json!({"start": 0, "entries": []})));
}

/// BR-011, BR-039: deletions are found by asking for them, and an update query shows none on new servers.
#[tokio::test(start_paused = true)]
async fn tombstones_hide_from_update_queries_of_new_servers_and_show_in_old_ones() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[3]);
    simulator.world(|world| world.delete(Kind::Bibs, bib)).unwrap();
    let by_update = "&updatedDate=[1990-01-01T00:00:00Z,]";
    assert!(!ids(&client.sweep("bibs", by_update).await).contains(&bib));
    assert!(ids(&client.sweep("bibs", "").await).contains(&bib));
    let stubs = client.sweep("bibs", "&deleted=true&deletedDate=[2026-01-05,2026-01-05]").await;
    assert_eq!(stubs, [json!({"id": bib.to_string(), "deletedDate": "2026-01-05", "deleted": true})]);

    simulator.with(|simulator| simulator.switches = Switches::v3());
    assert!(ids(&client.sweep("bibs", by_update).await).contains(&bib));
}

#[tokio::test(start_paused = true)]
async fn a_deleted_item_has_lost_its_bibs() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let item = simulator.world(|world| world.ids(Kind::Items)[0]);
    simulator.world(|world| world.delete(Kind::Items, item)).unwrap();
    let (_, stub) = client.get(&format!("/items/{item}?fields=bibIds,varFields,fixedFields")).await;
    assert_eq!(
        stub,
        json!({"id": item.to_string(), "deletedDate": "2026-01-05", "deleted": true, "bibIds": [], "fixedFields": {}, "varFields": []})
    );
}

#[tokio::test(start_paused = true)]
async fn suppressed_records_come_along_unless_filtered() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[7]);
    simulator.world(|world| world.suppress(Kind::Bibs, bib)).unwrap();
    let (_, entry) = client.get(&format!("/bibs/{bib}?fields=suppressed,fixedFields")).await;
    assert_eq!(entry["suppressed"], true);
    assert_eq!(entry["fixedFields"]["31"]["value"], "d");
    assert!(ids(&client.sweep("bibs", "&suppressed=true").await).contains(&bib));
    assert!(!ids(&client.sweep("bibs", "&suppressed=false").await).contains(&bib));
}

#[tokio::test(start_paused = true)]
async fn locations_and_bibs_select_items() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let served = client.sweep("items", "&locations=main*,law").await;
    let codes: BTreeSet<&str> =
        served.iter().map(|entry| entry["location"]["code"].as_str().unwrap().trim_end()).collect();
    assert_eq!(codes, BTreeSet::from(["law", "main", "mainf", "mainr"]));
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[0]);
    let item = simulator.world(|world| world.create_item(&[bib]));
    assert!(ids(&client.entries(&format!("/items?bibIds={bib}")).await).contains(&item));
}

#[tokio::test(start_paused = true)]
async fn total_counts_the_page_unless_the_server_does_otherwise() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    assert_eq!(client.get("/bibs?limit=10&deleted=false").await.1["total"], 10);
    simulator.with(|simulator| simulator.switches.total = Total::AllMatches);
    assert_eq!(client.get("/bibs?limit=10&deleted=false").await.1["total"], 60);
    simulator.with(|simulator| simulator.switches.total = Total::Absent);
    assert!(client.get("/bibs?limit=10").await.1.get("total").is_none());
}
