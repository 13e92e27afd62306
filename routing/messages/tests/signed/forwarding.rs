//! The receiver of a packet that is only forwarded is an address of the chain between, which some chains read: Noble refuses
//! its USDC otherwise. A chain that does not forward although a list says so pays that receiver, so it is the user's own.

use messages::address;
use planner::Step;

use crate::support::proto_form::transfer;
use crate::support::world::{self, L1, L2};
use crate::support::{OTHER, Scenario, USER};

/// The voucher of the L1's coin on the rollup.
const VOUCHER: &str = "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50";

/// The receiver of a packet to the rollup, which sends the tokens back.
fn receiver_between(scenario: &Scenario, sender: &str) -> String {
    let channel = scenario.registry.channel_at(scenario.chain(L1), "transfer", "channel-0").unwrap();
    let (coin, voucher) = ((L1, "uinit"), (L2, VOUCHER));
    let there = scenario.hop(Step::Ibc { channel }, coin, voucher, 55_555, 55_555);
    let back = scenario.hop(Step::Ibc { channel }, voucher, coin, 55_555, 55_555);
    transfer(&scenario.msgs(vec![there, back], &[sender, OTHER])[0]).receiver
}

#[test]
fn a_packet_that_a_chain_does_not_forward_arrives_in_the_users_own_account() {
    let scenario = world::recorded();
    assert_eq!(receiver_between(&scenario, USER), USER);
}

#[test]
fn a_contract_that_signs_has_no_key_elsewhere_so_the_account_that_forwards_is_the_receiver() {
    let scenario = world::recorded();
    let contract = chain::Account::from_bytes(&[9; 32]).unwrap().to_bech32("init");
    let receiver = receiver_between(&scenario, &contract);
    assert_eq!(receiver, registry::intermediary::forwarder("channel-0", &contract).to_bech32("init"));
    assert!(address::read(&scenario.registry, scenario.chain(L2), "receiver", &receiver).is_ok());
}
