//! Tokens, roles, and every way of being refused.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use sierra_sync::sierra::transport::Transport;
use sierra_sync::simulator::{Endpoint, ExpiredToken, Fault, Permission, Unauthorized};

use super::client::{Client, OPTIONS, small_library, token_request};

fn body(answer: &http::Response<Bytes>) -> Value {
    serde_json::from_slice(answer.body()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_token_is_described_and_runs_out() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let (_, info) = client.get("/info/token").await;
    assert_eq!((&info["keyId"], &info["expiresIn"]), (&json!("simulator-key"), &json!(3_000)));
    let reading = info["roles"].as_array().unwrap().iter().find(|role| role["name"] == "Bibs Read").unwrap();
    assert_eq!(reading["permissions"], json!(["Bibs_List", "Bibs_Read", "Bibs_Read_Marc"]));

    tokio::time::sleep(Duration::from_secs(3_000)).await;
    for (form, code) in
        [(ExpiredToken::InvalidGrant, 123), (ExpiredToken::BadHeader, 113), (ExpiredToken::InvalidToken, 120)]
    {
        simulator.with(|simulator| simulator.switches.expired_token = form);
        let (status, body) = client.get("/bibs").await;
        assert_eq!((status, &body["code"]), (401, &json!(code)));
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_credentials_and_a_missing_header_get_401() {
    let simulator = small_library();
    let transport = simulator.transport();
    let refused = transport.send(token_request("simulator-key:guess"), OPTIONS).await.unwrap();
    assert_eq!(refused.status(), 401);
    let bare = http::Request::get("http://sierra.test/iii/sierra-api/v6/bibs").body(Bytes::new()).unwrap();
    let refused = transport.send(bare, OPTIONS).await.unwrap();
    assert_eq!((refused.status().as_u16(), &body(&refused)["code"]), (401, &json!(113)));
}

#[tokio::test(start_paused = true)]
async fn a_missing_role_is_403_with_code_116() {
    let simulator = small_library();
    simulator.with(|simulator| simulator.access = simulator.access.clone().without_patrons());
    let client = Client::of(&simulator).await;
    let (status, body) = client.get("/patrons").await;
    assert_eq!((status, &body["code"]), (403, &json!(116)));
    assert_eq!(client.get("/items").await.0, 200);
}

/// A9: a key that can also write shows it.
#[tokio::test(start_paused = true)]
async fn write_roles_are_listed() {
    let simulator = small_library();
    simulator.with(|simulator| simulator.access.permissions.insert(Permission::BibsWrite));
    let client = Client::of(&simulator).await;
    let (_, info) = client.get("/info/token").await;
    assert!(info["roles"].as_array().unwrap().iter().any(|role| role["name"] == "Bibs Write"));
}

/// BR-034: the journal tells how many tokens a client took; BR-100: revoked ones are dead at once.
#[tokio::test(start_paused = true)]
async fn revoked_tokens_are_dead_and_token_calls_are_counted() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    simulator.with(|simulator| simulator.revoke_tokens());
    assert_eq!(client.get("/bibs").await.0, 401);
    let again = Client::of(&simulator).await;
    assert_eq!(again.get("/bibs").await.0, 200);
    simulator.with(|simulator| {
        assert_eq!(simulator.journal.count(Endpoint::Token), 2);
        assert_eq!(simulator.tokens_issued(), 2);
    });
}

#[tokio::test(start_paused = true)]
async fn a_new_token_ends_the_earlier_ones_only_where_it_is_so_configured() {
    let simulator = small_library();
    let first = Client::of(&simulator).await;
    let second = Client::of(&simulator).await;
    assert_eq!((first.get("/bibs").await.0, second.get("/bibs").await.0), (200, 200));
    simulator.with(|simulator| simulator.switches.one_token = true);
    let third = Client::of(&simulator).await;
    assert_eq!((first.get("/bibs").await.0, second.get("/bibs").await.0), (401, 401));
    assert_eq!(third.get("/bibs").await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn token_replies_can_be_odd() {
    let simulator = small_library();
    let reply = async || {
        let transport = simulator.transport();
        body(&transport.send(token_request("simulator-key:simulator-secret"), OPTIONS).await.unwrap())
    };
    assert_eq!(reply().await["expires_in"], 3_600);
    simulator.plan(Fault::ExpiresIn { literal: Some("\"soon\"".into()) }.first(1).at(Endpoint::Token));
    assert_eq!(reply().await["expires_in"], "soon");
    simulator.plan(Fault::ExpiresIn { literal: None }.first(1).at(Endpoint::Token));
    assert!(reply().await.get("expires_in").is_none());
}

/// `sierra-api.md` §1.3, BR-110: each form of 401.
#[tokio::test(start_paused = true)]
async fn every_form_of_401_can_be_had() {
    let simulator = small_library();
    let client = Client::of(&simulator).await;
    for (form, start) in [
        (Unauthorized::BadHeader, "{\"code\":113"),
        (Unauthorized::InvalidToken, "{\"code\":120"),
        (Unauthorized::InvalidGrant, "{\"code\":123"),
        (Unauthorized::Html, "<!DOCTYPE"),
        (Unauthorized::Bare, ""),
    ] {
        simulator.plan(Fault::Unauthorized(form).first(1));
        let answer = client.try_get("/bibs").await.unwrap();
        assert_eq!(answer.status(), 401);
        assert!(answer.body().starts_with(start.as_bytes()), "{form:?}");
        assert_eq!(start.is_empty(), answer.body().is_empty());
    }
}
