//! Any body gets a response or a JSON refusal with code, message and details; none makes the service fail.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use crate::client::{Client, USER, USER_HEX, example, questions};

/// Valid bodies; most of the changes below make them invalid.
fn good() -> Vec<(&'static str, Value)> {
    let mut msgs = example("route-request");
    msgs["operations"] = example("route")["operations"].clone();
    msgs["address_list"] = json!([USER, USER]);
    msgs["signed_op_hook"] = json!({ "signer": USER, "hook": "AA==" });
    let mut direct = example("msgs-direct-request");
    direct["timeout_seconds"] = json!("300");
    let layer_zero = example("operation-layer-zero");
    let over = json!({
        "amount_in": "1000000000000000", "source_asset_chain_id": "1", "source_asset_denom": "ethereum-native",
        "dest_asset_chain_id": "interwoven-1",
        "dest_asset_denom": layer_zero["layer_zero_transfer"]["denom_out"],
        "operations": [layer_zero], "address_list": [USER_HEX, USER],
    });
    let mut bodies = questions();
    bodies.extend([
        ("/v2/fungible/route", example("route-request")),
        ("/v2/fungible/msgs", msgs),
        ("/v2/fungible/msgs", over),
        ("/v2/fungible/msgs_direct", direct),
        ("/v2/tx/submit", json!({})),
        ("/nft", json!({})),
    ]);
    bodies
}

const KNOWN: &[&str] = &[
    "",
    "0",
    "1",
    "uinit",
    "interwoven-1",
    "yominet-1",
    "1",
    "nowhere",
    "ethereum-native",
    USER,
    USER_HEX,
    "OPINIT",
];

/// Texts with a meaning in some member, and others.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![proptest::sample::select(KNOWN).prop_map(str::to_owned), "\\PC{0,12}", "[0-9]{1,90}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((text(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect()),
        ]
    })
}

/// A new value, or `None` for removal, and the index of a JSON pointer, modulo their number.
fn change() -> impl Strategy<Value = (usize, Option<Value>)> {
    (any::<usize>(), proptest::option::weighted(0.8, value()))
}

fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    let mut inside = |name: &str, value: &Value| {
        let at = format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"));
        found.push(at.clone());
        pointers(value, &at, found);
    };
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| inside(name, value)),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, value)| inside(&n.to_string(), value)),
        _ => {}
    }
}

fn changed(mut body: Value, changes: Vec<(usize, Option<Value>)>) -> Value {
    for (place, value) in changes {
        let mut places = vec![String::new()];
        pointers(&body, "", &mut places);
        let place = &places[place % places.len()];
        let (parent, name) = place.rsplit_once('/').unwrap_or(("", ""));
        match (value, body.pointer_mut(parent)) {
            (None, Some(Value::Object(members))) => {
                members.remove(&name.replace("~1", "/").replace("~0", "~"));
            }
            (value, _) => *body.pointer_mut(place).unwrap() = value.unwrap_or_default(),
        }
    }
    body
}

fn run(cases: u32, body: impl Fn(&Value, Value, Vec<(usize, Option<Value>)>) -> Value) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (client, good) = (Client::mainnet(), good());
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let input = (0..good.len(), value(), proptest::collection::vec(change(), 1..4));
    let outcome = runner.run(&input, |(which, any, changes)| {
        let (path, good) = &good[which];
        let body = body(good, any, changes);
        let answer = runtime.block_on(client.post(path, &body));
        prop_assert!(answer.status != 500, "{path} {body}: {}", answer.json());
        if answer.status == 200 {
            answer.json();
        } else {
            answer.refusal();
        }
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn any_json_is_answered_or_refused() {
    run(1500, |_, any, _| any);
}

#[test]
fn changed_valid_bodies_are_answered_or_refused() {
    run(4000, |good, _, changes| changed(good.clone(), changes));
}
