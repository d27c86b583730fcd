//! MARC: one record in three renderings, exports in three phases.

use bytes::Bytes;
use serde_json::{Value, json};
use sierra_sync::sierra::transport::Transport;
use sierra_sync::simulator::{BASE_PATH, EmptyExport, Fault, InProcess, Kind, MarcValue, Permission};

use super::client::{Client, OPTIONS, small_library};

async fn send(transport: &InProcess, token: &str, method: &str, url: &str, accept: &str) -> http::Response<Bytes> {
    let request = http::Request::builder()
        .method(method)
        .uri(url)
        .header("authorization", format!("Bearer {token}"))
        .header("accept", accept)
        .body(Bytes::new())
        .unwrap();
    transport.send(request, OPTIONS).await.unwrap()
}

/// Splits an ISO 2709 file by the lengths in its leaders.
fn records(file: &[u8]) -> Vec<&[u8]> {
    let mut rest = file;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let length: usize = std::str::from_utf8(&rest[..5]).unwrap().parse().unwrap();
        let (record, after) = rest.split_at(length);
        assert!(record.ends_with(b"\x1e\x1d"));
        records.push(record);
        rest = after;
    }
    records
}

#[tokio::test(start_paused = true)]
async fn an_export_makes_a_file_that_is_fetched_and_deleted() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let (_, summary) = client.get("/bibs/marc?limit=2000&id=[0,]").await;
    let truth = simulator.world(|world| world.truth(Kind::Bibs));
    assert_eq!(summary["inputRecords"], truth.live.len() + truth.deleted.len());
    assert_eq!(summary["deletedRecords"], truth.deleted.len());
    assert_eq!((&summary["outputRecords"], &summary["errors"]), (&json!(truth.live.len()), &json!(0)));

    let url = summary["file"].as_str().unwrap();
    assert!(url.starts_with(&format!("http://sierra.test{BASE_PATH}/bibs/marc/files/")));
    let file = send(&client.transport, &client.token, "GET", url, "*/*").await;
    assert_eq!(file.headers()["content-type"], "application/octet-stream");
    assert_eq!(records(file.body()).len(), truth.live.len());
    assert_eq!(simulator.with(|simulator| simulator.export_files()), 1);
    assert_eq!(send(&client.transport, &client.token, "DELETE", url, "*/*").await.status(), 204);
    assert_eq!(simulator.with(|simulator| simulator.export_files()), 0);
    assert_eq!(send(&client.transport, &client.token, "GET", url, "*/*").await.status(), 404);
}

/// BR-081: item fields beyond 99,999 bytes are lost, and only `errors` tells.
#[tokio::test(start_paused = true)]
async fn a_bib_with_thousands_of_items_loses_most_of_them_in_an_export() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bib = simulator.world(|world| {
        let bib = world.create_bib();
        for _ in 0..3_000 {
            world.create_item(&[bib]);
        }
        bib
    });
    let (_, summary) = client.get(&format!("/bibs/marc?id={bib}")).await;
    assert_eq!((&summary["outputRecords"], &summary["errors"]), (&json!(1), &json!(1)));
    let file = send(&client.transport, &client.token, "GET", summary["file"].as_str().unwrap(), "*/*").await;
    assert!(file.body().len() <= 99_999);
    let items = file.body().windows(3).filter(|window| *window == b"945").count();
    assert!((200..2_000).contains(&items), "{items}");
}

/// BR-045: a range with nothing to export fails in the form of this server; one poison bib fails its range.
#[tokio::test(start_paused = true)]
async fn empty_and_poisoned_ranges_fail() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let nothing = "/bibs/marc?id=[1,2]";
    let (status, body) = client.get(nothing).await;
    assert_eq!((status, &body["code"]), (500, &json!(135)));
    simulator.with(|simulator| simulator.switches.empty_export = EmptyExport::NotFound);
    assert_eq!(client.get(nothing).await.1["code"], 107);
    simulator.with(|simulator| simulator.switches.empty_export = EmptyExport::NoOutput);
    assert_eq!(client.get(nothing).await.1["outputRecords"], 0);

    let bibs = simulator.world(|world| world.ids(Kind::Bibs));
    simulator.plan(Fault::Poison { kind: Kind::Bibs, id: bibs[4], code: 135, even_ids: true });
    assert_eq!(client.get(&format!("/bibs/marc?id=[{},{}]", bibs[0], bibs[8])).await.1["code"], 135);
    assert_eq!(client.get(&format!("/bibs/marc?id=[{},{}]", bibs[5], bibs[8])).await.0, 200);
}

/// BR-091: live bibs that no export contains.
#[tokio::test(start_paused = true)]
async fn an_unexportable_bib_is_input_but_no_output() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bibs = simulator.world(|world| world.ids(Kind::Bibs));
    simulator.world(|world| world.make_unexportable(bibs[0])).unwrap();
    let (_, summary) = client.get(&format!("/bibs/marc?id={},{}", bibs[0], bibs[1])).await;
    assert_eq!((&summary["inputRecords"], &summary["outputRecords"]), (&json!(2), &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn deleting_all_files_needs_more_than_a_reading_key() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let url = format!("http://sierra.test{BASE_PATH}/bibs/marc");
    assert_eq!(send(&client.transport, &client.token, "DELETE", &url, "*/*").await.status(), 403);
    simulator.with(|simulator| simulator.access.permissions.insert(Permission::BibsWrite));
    assert_eq!(send(&client.transport, &client.token, "DELETE", &url, "*/*").await.status(), 200);
}

#[tokio::test(start_paused = true)]
async fn one_record_comes_in_three_renderings_and_in_no_other() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    let bib = simulator.world(|world| world.ids(Kind::Bibs)[0]);
    let url = format!("http://sierra.test{BASE_PATH}/bibs/{bib}/marc");
    let get = async |accept| send(&client.transport, &client.token, "GET", &url, accept).await;
    let truth = simulator.world(|world| world.true_record(Kind::Bibs, bib)).unwrap().marc;
    let data = truth.iter().filter(|field| matches!(field.value, MarcValue::Subfields(_))).count();
    let control = truth.len() - data - 1;

    let xml = get("application/marc-xml").await;
    assert_eq!(xml.headers()["content-type"], "application/marc-xml;charset=UTF-8");
    let xml = String::from_utf8(xml.body().to_vec()).unwrap();
    assert_eq!(xml.matches("<marcxml:datafield ").count(), data);
    assert_eq!(xml.matches("<marcxml:controlfield ").count(), control);

    let marc_json: Value = serde_json::from_slice(get("application/marc-json").await.body()).unwrap();
    assert_eq!(marc_json["datafield"].as_array().unwrap().len(), data);
    assert_eq!(marc_json["datafield"][0]["ind"].as_str().unwrap().len(), 2);
    let in_json: Value = serde_json::from_slice(get("application/marc-in-json").await.body()).unwrap();
    assert_eq!(in_json["fields"].as_array().unwrap().len(), data + control);

    let refused = get("application/json").await;
    assert_eq!(refused.status(), 400);
    assert_eq!(serde_json::from_slice::<Value>(refused.body()).unwrap()["code"], 108);
}
