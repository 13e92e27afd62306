//! Many contract calls in one request, and the proof of their state's height.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use node::{BATCH, ContractCall, Error, Evm, Kind, Probe, Rest, StateAt};
use serde_json::{Value, json};

use crate::scripted::{Asked, Play, Server, json as answer, limits};

fn evm(servers: &[&Server]) -> Evm {
    Evm::new(servers.iter().map(|server| server.url.clone()).collect(), limits()).unwrap()
}

fn calls(n: usize) -> Vec<ContractCall> {
    (0..n).map(|n| ContractCall { to: [0xab; 20], data: vec![u8::try_from(n % 256).unwrap()] }).collect()
}

fn probed() -> StateAt {
    let probe = Some(Probe { address: "init1".to_owned(), sequence: 4 });
    StateAt { probe, ..StateAt::from(Some(9)) }
}

fn exact() -> StateAt {
    StateAt { exact: true, ..StateAt::from(Some(9)) }
}

/// The data of a call that returns the height of the state it runs in.
const NUMBER: &str = "0x4360005260206000f3";

fn word(number: u64) -> Value {
    json!({ "result": format!("0x{number:064x}") })
}

/// Answers each call of a batch, the last first; a single call gets a single reply.
fn each(say: impl Fn(&Value) -> Value + Send + Sync + 'static) -> impl Fn(usize, &Asked) -> Play {
    move |_, asked| {
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        let one = |call: &Value| {
            let mut reply = say(call);
            reply["id"] = call["id"].clone();
            reply
        };
        let reply = match body.as_array() {
            Some(calls) => calls.iter().rev().map(one).collect::<Vec<_>>().into(),
            None => one(&body),
        };
        answer(&reply.to_string())
    }
}

/// Returns the data of a call; runs in the state of `height`, which is the newest.
fn echo(height: u64) -> impl Fn(&Value) -> Value {
    move |call| match &call["params"][0]["data"] {
        _ if call["method"] == "eth_blockNumber" => json!({ "result": format!("{height:#x}") }),
        data if data == NUMBER => word(height),
        data => json!({ "result": data }),
    }
}

#[tokio::test]
async fn calls_are_batched_between_calls_for_the_height_and_a_failing_one_affects_no_other() {
    let server = Server::play(each(|call| match call["params"][0]["data"].as_str() {
        Some("0x01") => json!({ "error": { "code": 3, "message": "execution reverted" } }),
        Some("0x02") => json!({ "error": { "code": -32003, "message": "response too large" } }),
        _ => echo(9)(call),
    }))
    .await;
    let answers = evm(&[&server]).calls(&calls(4), &exact()).await;
    assert_eq!((&answers[0], &answers[3]), (&Ok(vec![0]), &Ok(vec![3])));
    assert!(matches!(answers[1], Err(Error::Refused { .. })), "{answers:?}");
    assert!(matches!(answers[2], Err(Error::Faulty { .. })), "{answers:?}");
    let asked = server.asked();
    let body: Value = serde_json::from_str(&asked[0].body).unwrap();
    assert_eq!((asked.len(), body.as_array().unwrap().len()), (1, 8));
    for end in [1, 6] {
        assert_eq!(body[end]["params"], json!([{ "data": NUMBER }, "0x9"]));
    }
    assert_eq!([&body[0]["method"], &body[7]["method"]], ["eth_blockNumber"; 2]);
}

#[tokio::test]
async fn a_request_has_a_bounded_number_of_calls() {
    let server = Server::play(each(echo(9))).await;
    let answers = evm(&[&server]).calls(&calls(2 * BATCH + 1), &StateAt::from(Some(9))).await;
    assert!(answers.iter().enumerate().all(|(n, answer)| answer.as_deref() == Ok(&[n.to_le_bytes()[0]][..])));
    assert_eq!(server.count(), 3);
}

#[tokio::test]
async fn answers_from_the_state_of_another_height_are_rejected_and_another_server_is_queried() {
    let there = Server::play(each(echo(9))).await;
    // The newest height, the height of the state, the same after the calls; whether the calls count.
    let cases = [
        ([9, 9, 9, 9], true),
        ([10, 9, 9, 10], true),
        ([10, 9, 9, 11], true),
        ([9, 8, 8, 9], false),
        ([9, 8, 9, 9], false),
        ([9, 9, 10, 9], false),
        ([9, 10, 10, 9], false),
        // The state of the next height may have been read in between.
        ([9, 9, 9, 10], false),
    ];
    for ([before, first, last, after], count) in cases {
        let (numbers, heights) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let elsewhere = Server::play(each(move |call| match &call["params"][0]["data"] {
            // `each` answers the last call first.
            _ if call["method"] == "eth_blockNumber" => {
                let height = [after, before][heights.fetch_add(1, Relaxed) % 2];
                json!({ "result": format!("{height:#x}") })
            }
            data if data == NUMBER => word([last, first][numbers.fetch_add(1, Relaxed) % 2]),
            data => json!({ "result": data }),
        }))
        .await;
        let answers = evm(&[&elsewhere]).calls(&calls(2), &exact()).await;
        let not_yet = |answer: &Result<_, Error>| answer.as_ref().is_err_and(|e| e.kind() == Kind::NotYet);
        assert_eq!(answers.iter().all(not_yet), !count, "{before} {first} {last} {after}: {answers:?}");
        for _ in 0..4 {
            let answers = evm(&[&elsewhere, &there]).calls(&calls(2), &exact()).await;
            assert_eq!(answers, [Ok(vec![0]), Ok(vec![1])]);
        }
    }
}

#[tokio::test]
async fn a_server_without_batches_gets_single_calls_between_calls_for_the_height() {
    for (height, taken) in [(9, true), (8, false), (10, false)] {
        for refusal in [r#"{"id":null,"error":{"code":-32600,"message":"no batches"}}"#, "<html>no</html>"] {
            let singly = each(echo(height));
            let server =
                Server::play(
                    move |n, asked| {
                        if asked.body.starts_with('[') { answer(refusal) } else { singly(n, asked) }
                    },
                )
                .await;
            let answers = evm(&[&server]).calls(&calls(2), &exact()).await;
            assert_eq!(answers.iter().all(Result::is_ok), taken, "{refusal}: {answers:?}");
            let asked = server.asked();
            assert!(asked[2].body.contains(NUMBER) && asked[5].body.contains(NUMBER), "{}", asked.len());
        }
    }
}

#[tokio::test]
async fn an_error_of_a_gateway_is_never_a_contracts_refusal() {
    for (code, message) in
        [(-32601, "the method does not exist"), (-32600, "no"), (-32602, "no"), (-32005, "limit")]
    {
        let server =
            Server::play(each(move |_| json!({ "error": { "code": code, "message": message } }))).await;
        for state in [exact(), StateAt::from(Some(9))] {
            for n in [1, 3] {
                let answers = evm(&[&server]).calls(&calls(n), &state).await;
                let no = |answer: &Result<_, Error>| !matches!(answer, Err(Error::Refused { .. }) | Ok(_));
                assert!(answers.len() == n && answers.iter().all(no), "{code}: {answers:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_rest_query_is_put_to_a_server_only_if_its_state_passes_the_probe() {
    let account = |sequence: u64| {
        let base = json!({ "address": "init1", "sequence": sequence.to_string() });
        answer(&json!({ "account": { "@type": "/x.ContractAccount", "base_account": base } }).to_string())
    };
    let play = move |sequence| {
        Server::play(move |_, asked: &Asked| {
            let is_account = asked.line.contains("/cosmos/auth/v1beta1/accounts/");
            assert!(asked.headers.contains("x-cosmos-block-height: 9"), "{}", asked.headers);
            if is_account { account(sequence) } else { answer(r#"{"data":1}"#) }
        })
    };
    let (behind, there) = (play(4).await, play(5).await);
    let rest = |server: &Server| Rest::new(vec![server.url.clone()], limits()).unwrap();
    let error = rest(&behind).wasm_contract("a", probed()).await.unwrap_err();
    assert_eq!((error.kind(), behind.count()), (Kind::NotYet, 1), "{error}");
    rest(&there).wasm_contract("a", probed()).await.unwrap();
    let both = Rest::new(vec![behind.url.clone(), there.url.clone()], limits()).unwrap();
    for _ in 0..4 {
        both.wasm_contract("a", probed()).await.unwrap();
    }
}
