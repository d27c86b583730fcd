//! The simulator says what the fixtures say: the same shapes, and error bodies to the letter.

use std::collections::BTreeSet;

use serde_json::Value;
use sierra_sync::sierra::transport::Transport;
use sierra_sync::simulator::{Fault, Kind, Oddity, SharedSimulator, Switches, Unauthorized};

use super::client::{Client, OPTIONS, small_library, token_request};

fn text(name: &str) -> String {
    std::fs::read_to_string(format!("{}/fixtures/sierra/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn fixture(name: &str) -> Value {
    serde_json::from_str(&text(name)).unwrap()
}

/// Every path to a leaf with the type there. MARC tags and subfield codes, where they are keys, count as one.
fn shape(value: &Value) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    collect(value, "", &mut paths);
    paths
}

fn collect(value: &Value, path: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            if object.is_empty() {
                paths.insert(format!("{path}: empty object"));
            }
            for (key, inner) in object {
                let is_tag = path.ends_with(".fields[]") || path.ends_with("TAG.subfields[]");
                collect(inner, &format!("{path}.{}", if is_tag { "TAG" } else { key }), paths);
            }
        }
        Value::Array(array) => {
            if array.is_empty() {
                paths.insert(format!("{path}: empty array"));
            }
            array.iter().for_each(|inner| collect(inner, &format!("{path}[]"), paths));
        }
        Value::String(_) => drop(paths.insert(format!("{path}: text"))),
        Value::Bool(_) => drop(paths.insert(format!("{path}: boolean"))),
        Value::Number(number) if number.is_f64() => drop(paths.insert(format!("{path}: fraction"))),
        Value::Number(_) => drop(paths.insert(format!("{path}: integer"))),
        Value::Null => drop(paths.insert(format!("{path}: null"))),
    }
}

fn compare(served: &Value, name: &str) {
    let (served, expected) = (shape(served), shape(&fixture(name)));
    let missing: Vec<_> = expected.difference(&served).collect();
    let beyond: Vec<_> = served.difference(&expected).collect();
    assert!(missing.is_empty() && beyond.is_empty(), "{name}: missing {missing:?}, beyond {beyond:?}");
}

/// A library that has one of everything the fixtures show.
async fn furnished() -> (SharedSimulator, Client) {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    simulator.world(|world| {
        let (item, patron) = (world.ids(Kind::Items)[0], world.ids(Kind::Patrons)[0]);
        world.check_out(item, patron, 14).unwrap();
        let bib = world.ids(Kind::Bibs)[0];
        world.plant(bib, Oddity::NoLeader).unwrap();
        let left = world.ids(Kind::Patrons)[1];
        world.delete(Kind::Patrons, left).unwrap();
    });
    (simulator, client)
}

#[tokio::test(start_paused = true)]
async fn pages_have_the_shapes_of_the_fixtures() {
    let (_simulator, client) = furnished().await;
    for (path, name) in [
        ("/bibs?limit=2000", "bibs-default.json"),
        ("/bibs?limit=2000&deleted=false&fields=default,locations,fixedFields,varFields,marc", "bibs-full.json"),
        ("/items?limit=2000", "items-default.json"),
        (
            "/items?limit=2000&fields=default,suppressed,itemType,copyNo,holdCount,fixedFields,varFields",
            "items-full.json",
        ),
        ("/patrons?limit=2000&deleted=false", "patrons-default.json"),
        (
            "/patrons?limit=2000&fields=default,updatedDate,createdDate,deleted,suppressed,names,barcodes,emails,autoBlockInfo,addresses,phones,uniqueIds,langPref,fixedFields,varFields",
            "patrons-full.json",
        ),
        ("/bibs?deleted=true&deletedDate=1970-01-01", "empty-page.json"),
        ("/bibs/marc?limit=2000", "marc-export.json"),
    ] {
        compare(&client.get(path).await.1, name);
    }
}

#[tokio::test(start_paused = true)]
async fn version_3_pages_have_the_shape_of_theirs() {
    let (simulator, client) = furnished().await;
    simulator.with(|simulator| simulator.switches = Switches::v3());
    let (_, mut page) = client.get("/bibs?limit=2000&updatedDate=[1990-01-01T00:00:00Z,]").await;
    for entry in page["entries"].as_array_mut().unwrap() {
        let entry = entry.as_object_mut().unwrap();
        entry.remove("isbn");
        entry.remove("callNumber");
    }
    compare(&page, "bibs-v3.json");
}

#[tokio::test(start_paused = true)]
async fn tokens_and_their_description_have_the_shapes_of_the_fixtures() {
    let (simulator, client) = furnished().await;
    let reply = simulator.transport().send(token_request("simulator-key:simulator-secret"), OPTIONS).await.unwrap();
    compare(&serde_json::from_slice(reply.body()).unwrap(), "token.json");
    compare(&client.get("/info/token").await.1, "token-info.json");
}

/// Every error body is the fixture's, to the letter.
#[tokio::test(start_paused = true)]
async fn error_bodies_are_those_of_the_fixtures() {
    let (simulator, client) = furnished().await;
    let rate = Fault::RateExceeded { status: 500, minutes: "12".into() };
    for (fault, path, name) in [
        (None, "/bibs?updatedDate=yesterday", "101.json"),
        (None, "/bibs?updateDate=[,]", "106.json"),
        (None, "/bibs?id=[1,2]", "107.json"),
        (None, "/items?fields=itype", "108.json"),
        (None, "/bibs/marc?id=[1,2]", "135.json"),
        (None, "/holdings", "404.html"),
        (Some(Fault::error(109)), "/bibs", "109.json"),
        (Some(Fault::error(116)), "/bibs", "116.json"),
        (Some(Fault::error(117)), "/bibs", "117.json"),
        (Some(Fault::Unauthorized(Unauthorized::BadHeader)), "/bibs", "113.json"),
        (Some(Fault::Unauthorized(Unauthorized::InvalidToken)), "/bibs", "120.json"),
        (Some(Fault::Unauthorized(Unauthorized::InvalidGrant)), "/bibs", "123.json"),
        (Some(rate), "/bibs", "rate-exceeded.json"),
        (Some(Fault::LoneCode), "/bibs", "lone-code.json"),
        (Some(Fault::NoEntries), "/bibs", "no-entries.json"),
        (Some(Fault::ErrorCodeText), "/bibs", "error-code.txt"),
        (Some(Fault::Html { status: 502 }), "/bibs", "502.html"),
    ] {
        if let Some(fault) = fault {
            simulator.plan(fault.first(1));
        }
        let answer = client.try_get(path).await.unwrap();
        let body = String::from_utf8(answer.body().to_vec()).unwrap();
        assert_eq!(body.trim_end(), text(&format!("errors/{name}")).trim_end(), "{name}");
    }
}
