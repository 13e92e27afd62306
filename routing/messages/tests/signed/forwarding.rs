//! A wrong entry in the list of forwarding chains costs a refund: the recorded chains return a packet whose receiver is no
//! address, and ours has such a receiver on every chain that should only forward.

use messages::address;
use planner::Step;
use serde_json::Value;

use crate::support::proto_form::transfer;
use crate::support::world::{self, L1, L2};
use crate::support::{OTHER, USER, recorded, text};

/// The voucher of the L1's coin on the rollup.
const VOUCHER: &str = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";

#[test]
fn a_packet_for_a_chain_that_does_not_forward_is_returned_to_its_sender() {
    let scenario = world::recorded();
    let channel = scenario.registry.channel_at(scenario.chain(L1), "transfer", "channel-0").unwrap();
    let (coin, voucher) = ((L1, "uinit"), (L2, VOUCHER));
    let there = scenario.hop(Step::Ibc { channel }, coin, voucher, 55_555, 55_555);
    let back = scenario.hop(Step::Ibc { channel }, voucher, coin, 55_555, 55_555);
    let ours = transfer(&scenario.msgs(vec![there, back], &[USER, OTHER])[0]).receiver;
    let is_address = |chain: &str, text: &str| {
        address::read(&scenario.registry, scenario.chain(chain), "receiver", text).is_ok()
    };
    assert!(is_address(L2, USER) && !is_address(L2, &ours), "{ours}");

    let mut returned = 0;
    for packet in recorded::transfers()["packets"].as_array().unwrap() {
        let data: Value = serde_json::from_str(text(packet, "/data")).unwrap();
        let (from, to) = (text(packet, "/from"), text(packet, "/to"));
        let sent_by_user = packet["what"] != "forwarded" && data["memo"].is_null();
        let plain = packet["src_port"] == "transfer" && sent_by_user;
        if !plain || packet["acknowledged"].is_null() || is_address(to, text(&data, "/receiver")) {
            continue;
        }
        assert!(packet["ack"]["error"].is_string(), "{packet}");
        // In the transaction of the acknowledgement, the sender gets the amount back.
        let hash = text(packet, "/acknowledged/hash");
        let name = if from == L1 { "l1" } else { "l2" };
        let answer = recorded::rest(name, &format!("/cosmos/tx/v1beta1/txs/{hash}"));
        let events = answer["tx_response"]["events"].as_array().unwrap();
        let attribute = |event: &Value, key: &str| {
            let attributes = event["attributes"].as_array().unwrap();
            attributes
                .iter()
                .find(|attribute| attribute["key"] == key)
                .map(|found| text(found, "/value").to_owned())
        };
        let sender = text(&data, "/sender");
        let refunded = events.iter().filter(|event| event["type"] == "coin_received").any(|event| {
            attribute(event, "receiver").as_deref() == Some(sender)
                && attribute(event, "amount").is_some_and(|amount| amount.starts_with(text(&data, "/amount")))
        });
        assert!(refunded, "{packet}");
        returned += 1;
    }
    assert_eq!(returned, 2);
}
