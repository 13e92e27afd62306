//! The bridge's executor compared with the recorded one.

use replay::answers::Service;
use serde_json::{Value, json};

use crate::{EVM, L2, Reply, extra, get, post};

const EXECUTOR: Service = Service::Executor;

fn bots() -> Vec<Value> {
    extra("l1-l2/l2").into_iter().filter(|line| line["kind"] == "bot").collect()
}

fn at(shown: u64, path: &str) -> Reply {
    L2.ask_at(shown, EXECUTOR, get(path))
}

#[test]
fn at_the_last_height_every_answer_is_the_recorded_one() {
    let mut asked = 0;
    for line in bots().iter().filter(|line| line.get("state").is_none()) {
        let path = line["path"].as_str().unwrap();
        let reply = L2.get(EXECUTOR, path);
        assert_eq!((Some(u64::from(reply.status)), reply.missing), (line["status"].as_u64(), 0), "{path}");
        if reply.status == 200 {
            assert_eq!(reply.json(), line["answer"], "{path}");
        } else {
            assert_eq!(reply.text, line["answer"].as_str().unwrap(), "{path}");
        }
        asked += 1;
    }
    assert!(asked > 25, "{asked}");
}

#[test]
fn a_withdrawal_is_unknown_then_without_proofs_then_with_them() {
    let recorded_in = |state: &str| bots().into_iter().find(|line| line["state"] == state).unwrap();
    let unknown = at(325, "/withdrawal/8");
    assert_eq!((unknown.status, unknown.missing), (500, 0));
    assert_eq!(unknown.text, recorded_in("just sent")["answer"]);
    // The output of the recorded withdrawal ends with L2 block 331 (`l2_block_number` of output 46).
    for shown in [326, 327, 330] {
        assert_eq!(at(shown, "/withdrawal/8").json(), recorded_in("no output yet")["answer"], "{shown}");
    }
    for shown in [331, 332, 820] {
        assert_eq!(at(shown, "/withdrawal/8").json(), recorded_in("output proposed")["answer"], "{shown}");
    }
    assert_eq!(recorded_in("claimed")["answer"], recorded_in("output proposed")["answer"]);
}

#[test]
fn the_list_of_an_address_grows_with_the_chain() {
    let path = "/withdrawals/init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd";
    let listed = |shown: u64, query: &str| {
        let reply = at(shown, &format!("{path}{query}"));
        assert_eq!((reply.status, reply.missing), (200, 0), "{}", reply.text);
        let json = reply.json();
        let sequences: Vec<_> =
            json["withdrawals"].as_array().unwrap().iter().map(|w| w["sequence"].clone()).collect();
        (json!(sequences), json["next"].clone(), json["withdrawals"][0]["output_index"].clone())
    };
    assert_eq!(listed(163, ""), (json!([]), Value::Null, Value::Null));
    assert_eq!(listed(164, ""), (json!([2]), Value::Null, json!(0)));
    assert_eq!(listed(169, ""), (json!([2]), Value::Null, json!(25)));
    assert_eq!(listed(326, ""), (json!([8, 2]), Value::Null, json!(0)));
    assert_eq!(listed(820, "?limit=1"), (json!([8]), json!(2), json!(46)));
    assert_eq!(listed(820, "?limit=1&offset=2"), (json!([2]), Value::Null, json!(25)));
    assert_eq!(listed(820, "?limit=1&offset=3&order=asc"), (json!([8]), Value::Null, json!(46)));
}

#[test]
fn an_unrecorded_request_to_the_executor_is_a_counted_error() {
    for (shown, path) in [(820, "/metrics"), (820, "/")] {
        let reply = at(shown, path);
        assert_eq!((reply.status, reply.missing), (501, 1), "{path}");
    }
    for (shown, read, withdrawals) in [(1, 1, 0), (325, 325, 7), (326, 326, 8), (820, 443, 10)] {
        let status: Value = serde_json::from_str(&at(shown, "/status").text).unwrap();
        let child = &status["child"];
        assert_eq!(
            (&child["node"]["last_block_height"], &child["last_withdrawal_l2_sequence"]),
            (&json!(read), &json!(withdrawals))
        );
    }
    let parsing = L2.get(EXECUTOR, "/withdrawal/x");
    assert_eq!((parsing.status, parsing.missing), (500, 0));
    assert!(parsing.text.starts_with("failed to parse sequence"), "{}", parsing.text);
    assert_eq!(L2.post(EXECUTOR, "/withdrawal/8", "").status, 405);
    assert_eq!(L2.ask(EXECUTOR, post("/", "")).status, 405);
    assert!(L2.recording.has_executor() && !EVM.recording.has_executor());
}
