//! The derived state of IBC and of the bridge, compared with what the recorded nodes said after their last height.

use serde_json::Value;

use crate::{BRIDGE_L1, BRIDGE_L2, Chain, L1, L2, extra, get};
use replay::answers::Service;

/// The part of a reply that does not depend on the height at which the node was asked.
fn comparable(mut answer: Value) -> Value {
    if let Some(members) = answer.as_object_mut() {
        members.remove("proof_height");
        members.remove("pagination");
    }
    answer
}

fn is_about_modules(path: &str) -> bool {
    let items = ["/packet_receipts/", "/packet_acks/", "/packet_commitments/", "/outputs/", "/by_hash?"];
    let is_list = path.contains("unreceived") || path.contains(',');
    (items.iter().any(|item| path.contains(item)) && !is_list)
        || ["/next_sequence", "/next_l1_sequence"]
            .iter()
            .any(|end| path.ends_with(end) && !path.contains("ophost"))
}

#[test]
fn every_recorded_state_of_packets_and_of_the_bridge_follows_from_the_events() {
    let chains: [(&str, &Chain); 4] = [
        ("l1-l2/l1", &L1),
        ("l1-l2/l2", &L2),
        ("bridge-cases/l1", &BRIDGE_L1),
        ("bridge-cases/l2", &BRIDGE_L2),
    ];
    for (name, chain) in chains {
        let (lines, first) = (extra(name), chain.recording.first());
        let mut compared = 0;
        for line in lines.iter().filter(|line| line["kind"] == "rest" && line["method"] == "GET") {
            let path = line["path"].as_str().unwrap();
            if !is_about_modules(path) || !line["height"].is_null() {
                continue;
            }
            // Outputs from before the first recorded height are unknown to the recording.
            let proposed = &line["answer"]["output_proposal"]["l1_block_number"];
            if proposed.as_str().is_some_and(|height| height.parse::<u64>().unwrap() < first) {
                continue;
            }
            let reply = chain.get(Service::Rest, path);
            assert_eq!(u64::from(reply.status), line["status"].as_u64().unwrap(), "{name} {path}");
            assert_eq!(comparable(reply.json()), comparable(line["answer"].clone()), "{name} {path}");
            compared += 1;
        }
        assert!(compared > 40, "{name}: {compared}");
    }
}

#[test]
fn a_state_is_that_of_its_height() {
    let path = "/ibc/core/channel/v1/channels/channel-0/ports/transfer/packet_receipts/1";
    let received = |height: u64| {
        let mut request = get(path);
        request.headers_mut().insert("x-cosmos-block-height", height.into());
        let reply = L2.ask_at(L2.recording.last(), Service::Rest, request);
        assert_eq!(reply.json()["proof_height"]["revision_height"], height.to_string());
        reply.json()["received"].as_bool().unwrap()
    };
    // Received in block 133.
    assert_eq!([1, 132, 133, 134].map(received), [false, false, true, true]);
}
