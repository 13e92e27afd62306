//! With everything visible, one poll finds the end of every transfer.

use chain::Timestamp;
use serde_json::Value;

use crate::expected::{deposits, expected, packets, withdrawals};
use crate::world::{L1, L2, Services, World, blocks};

/// Shortly after the last block.
pub(crate) fn afterwards() -> Timestamp {
    let last = blocks().last().unwrap().time;
    Timestamp::from_unix_nanos(last.unix_nanos() + 5_000_000_000)
}

/// The transfers of a response, sorted, without the text that the tables lack: the reason of a module's revert, whose
/// presence is checked.
pub(crate) fn comparable(answer: &Value) -> Vec<String> {
    let mut transfers = answer["transfers"].as_array().unwrap().clone();
    let hops = transfers.iter_mut().flat_map(|transfer| {
        let sequence = transfer["transfer_sequence"].as_array_mut().unwrap();
        let last = sequence.len().saturating_sub(1);
        sequence.iter_mut().enumerate().map(move |(at, hop)| (at == last, hop))
    });
    for (is_last, event) in hops {
        let error = &mut event["ibc_transfer"]["packet_txs"]["error"];
        if error["message"].as_str().is_some_and(|message| message.starts_with("ABCI code: 1:")) {
            let details = error["details"].take();
            assert_eq!(details["code"], 1);
            // A chain that forwarded a packet returns only the error text of the next chain.
            assert_eq!(details["message"] != error["message"], is_last, "the reason");
        }
        // Indexing with `[]` inserted the missing member.
        event.as_object_mut().unwrap().retain(|_, value| value.get("state").is_some());
    }
    let mut texts: Vec<_> = transfers.iter().map(ToString::to_string).collect();
    texts.sort();
    texts
}

pub(crate) fn check_end(world: &World) {
    for ((chain, hash), mut transfers) in expected() {
        let answer = world.status(&chain, &hash);
        // Members of our own values are sorted, like the tracker's after parsing.
        let mut wanted: Vec<_> = transfers.drain(..).map(|transfer| transfer.to_string()).collect();
        wanted.sort();
        assert_eq!(comparable(&answer), wanted, "{chain} {hash}");
        check_top(&answer);
    }
}

/// The top level repeats the only transfer; of several transfers it has all hops.
fn check_top(answer: &Value) {
    let transfers = answer["transfers"].as_array().unwrap();
    if let [only] = &transfers[..] {
        for (member, value) in only.as_object().unwrap() {
            assert_eq!(answer[member], *value, "{member}");
        }
    }
    let hops: Vec<_> =
        transfers.iter().flat_map(|t| t["transfer_sequence"].as_array().unwrap()).cloned().collect();
    assert_eq!(answer["transfer_sequence"], Value::Array(hops));
    let wanted = match answer["state"].as_str().unwrap() {
        "STATE_COMPLETED_SUCCESS" => "STATE_COMPLETED",
        "STATE_COMPLETED_ERROR" => "STATE_FAILED",
        "STATE_PENDING_ERROR" => "STATE_PENDING",
        other => other,
    };
    assert_eq!(answer["status"], wanted);
}

async fn tracked_whole(services: Services) -> World {
    let world = World::whole(services).await;
    let now = afterwards();
    for (chain, hash) in expected().keys() {
        let tracked = world.tracker().track(chain, hash, now).unwrap();
        assert_eq!(tracked.tx_hash, *hash);
        assert_eq!(world.status(chain, hash)["state"], "STATE_SUBMITTED");
    }
    let polled = world.tracker().poll_due(now).await.unwrap();
    assert_eq!((polled.polled, polled.changed), (expected().len(), expected().len()));
    world
}

#[tokio::test]
async fn every_recorded_transfer_is_followed_to_its_recorded_end_in_one_poll() {
    assert_eq!((packets().len(), deposits().len(), withdrawals().len()), (50, 12, 11));
    let world = tracked_whole(Services::All).await;
    check_end(&world);
    world.check_missing();
}

#[tokio::test]
async fn rest_alone_finds_the_same_transactions() {
    let world = tracked_whole(Services::RestOnly).await;
    for ((chain, hash), transfers) in expected() {
        let answer = world.status(&chain, &hash);
        let mut wanted: Vec<_> = transfers.iter().map(ToString::to_string).collect();
        wanted.sort();
        assert_eq!(comparable(&answer), wanted, "{chain} {hash}");
    }
}

#[tokio::test]
async fn a_transaction_of_a_rollup_is_found_by_either_of_its_hashes() {
    let world = World::whole(Services::All).await;
    let now = afterwards();
    // A packet and a withdrawal started by EVM calls.
    let hashes = [
        (
            "0xDA65FACB68B7CB8C935E9FBC1AF4038268696441561C5AC176A239EF39486905",
            "E7419C5D8D3B8CE43E8EA0E39ABD6B81508C5BF07FF848A980DB047B4BCEFD2B",
        ),
        (
            "0xc6df105041e088cfb40770b84e79c674ab80c234b4b63a1595e23f2693833ff7",
            "947c30960c71fd6e39ccd6a4abaf584963991d3504115b063ad54661a3ac669a",
        ),
    ];
    for (eth, cosmos) in hashes {
        let tracked = world.tracker().track(L2, eth, now).unwrap();
        assert_eq!(tracked.tx_hash, eth.to_lowercase());
        assert_eq!(tracked.explorer_link, format!("https://scan.test/{L2}/txs/{}", eth.to_lowercase()));
        assert!(world.tracker().status(L2, cosmos).unwrap().is_none());
        world.tracker().poll_due(now).await.unwrap();
        assert_eq!(world.text(L2, eth), world.text(L2, cosmos));
        // The same registration by its other hash.
        assert_eq!(world.tracker().track(L2, cosmos, now).unwrap(), tracked);
        let source = (L2.to_owned(), cosmos.to_uppercase());
        let wanted: Vec<_> = expected()[&source].iter().map(ToString::to_string).collect();
        assert_eq!(comparable(&world.status(L2, cosmos)), wanted);
    }
}

#[tokio::test]
async fn failed_transactions_have_their_reason() {
    let world = World::whole(Services::All).await;
    let now = afterwards();
    let failed = [
        (L1, "F026EA7467BB7A86A88C086C90CFAA99D62A9916B7A8C406BFCF175A156C992F", 1),
        (L2, "80D47301CBDAF282A16CCE7A4DF0F76982BEE1AC1B9E8CA863B656EA8ACE0FC1", 23),
        (L1, "8F7D4609975E4DE3A2205939001B3D87AC01A7F5B6919905B6A4C82CA75EF0BC", 11),
        (L2, "0x9b8c0d8520e06bc72eb6a0899c7274aa3ff800e08a84338a5ec8100a54b99c8f", 23),
    ];
    for (chain, hash, _) in failed {
        world.tracker().track(chain, hash, now).unwrap();
    }
    let polled = world.tracker().poll_due(now).await.unwrap();
    for (chain, hash, code) in failed {
        let answer = world.status(chain, hash);
        assert_eq!(
            (&answer["state"], &answer["status"]),
            (&"STATE_COMPLETED_ERROR".into(), &"STATE_FAILED".into())
        );
        assert_eq!(answer["error"]["type"], "STATUS_ERROR_TRANSACTION_EXECUTION");
        assert_eq!(answer["error"]["details"]["code"], code, "{answer}");
        assert_eq!(answer["transfers"][0]["error"], answer["error"]);
    }
    assert_eq!(polled.next_due, None, "nothing is left to look at");
}
