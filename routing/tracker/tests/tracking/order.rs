//! Relations between two responses about one transaction, and between a response and the visible blocks.

use serde_json::Value;

use crate::world::Heights;

/// Rank of the states of the wire; a state never returns to a lower rank.
fn rank(state: &str) -> u8 {
    match state {
        "STATE_SUBMITTED" | "TRANSFER_UNKNOWN" | "OPINIT_TRANSFER_UNKNOWN" => 0,
        "STATE_PENDING" | "TRANSFER_PENDING" | "OPINIT_TRANSFER_SENT" => 1,
        "STATE_PENDING_ERROR" | "TRANSFER_RECEIVED" => 2,
        "STATE_COMPLETED_SUCCESS"
        | "STATE_COMPLETED_ERROR"
        | "TRANSFER_SUCCESS"
        | "TRANSFER_FAILURE"
        | "OPINIT_TRANSFER_RECEIVED" => 3,
        other => panic!("no state of this recording: {other}"),
    }
}

/// Checks that no evidence is withdrawn: states only rise, ends and transactions are kept.
pub(crate) fn check_forward(before: &Value, after: &Value) {
    let both = |member: &str| (before[member].as_str().unwrap(), after[member].as_str().unwrap());
    let (was, is) = both("state");
    assert!(rank(was) < rank(is) || was == is, "{was} became {is}");
    let sequence = |status: &Value| status["transfer_sequence"].as_array().unwrap().clone();
    let (was, is) = (sequence(before), sequence(after));
    assert!(was.len() <= is.len(), "{was:?} became {is:?}");
    for (was, is) in was.iter().zip(&is) {
        check_hop(was, is);
    }
    if rank(both("state").0) == 3 {
        for member in ["transfer_asset_release", "error", "next_blocking_transfer"] {
            assert_eq!(before[member], after[member]);
        }
    }
}

fn check_hop(before: &Value, after: &Value) {
    let kind = before.as_object().unwrap().keys().next().unwrap();
    let (before, after) = (&before[kind], &after[kind]);
    let (was, is) = (before["state"].as_str().unwrap(), after["state"].as_str().unwrap());
    assert!(rank(was) < rank(is) || was == is, "{was} became {is}");
    for txs in ["packet_txs", "txs"] {
        for (name, tx) in before[txs].as_object().into_iter().flatten() {
            assert!(
                tx.is_null() || name == "error" || *tx == after[txs][name],
                "{name}: {tx} became {after}"
            );
        }
    }
}

/// Checks that every named transaction is in a visible block. `shown` has the tips, by chain.
pub(crate) fn check_visible(answer: &Value, heights: &Heights, shown: impl Fn(&str) -> u64) {
    let mut open = vec![answer];
    while let Some(value) = open.pop() {
        match value {
            Value::Object(members) => {
                if let (Some(chain), Some(hash)) = (value["chain_id"].as_str(), value["tx_hash"].as_str()) {
                    let height = heights[&(chain.to_owned(), hash.to_owned())];
                    assert!(height <= shown(chain), "{hash} at {height} of {chain} is not visible");
                }
                open.extend(members.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
}
