//! What causes a movement, or is caused by it, on another chain: packets of IBC, messages of an OPinit bridge.

use alloy::primitives::U256;
use sha2::{Digest as _, Sha256};

use super::kind::Kind;
use super::modules::MODULES;
use super::{Group, Movement, Reader, amount};
use crate::address::Account;
use crate::comet::Event;

/// What a movement is a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A packet of IBC, by its end on this chain.
    Packet {
        /// The port.
        port: String,
        /// The channel.
        channel: String,
        /// The packet's sequence.
        sequence: u64,
    },
    /// A deposit from the layer one into a rollup.
    Deposit {
        /// The bridge; a rollup's events do not name it.
        bridge: Option<u64>,
        /// The sequence on the layer one.
        sequence: u64,
    },
    /// A withdrawal from a rollup to the layer one.
    Withdrawal {
        /// The bridge; a rollup's events do not name it.
        bridge: Option<u64>,
        /// The sequence on the rollup.
        sequence: u64,
    },
}

/// Something that a message did, which its movements belong to.
pub(super) struct Act {
    pub(super) group: Group,
    pub(super) cause: Cause,
    what: What,
    /// True once the movement that ends it is found: one more is of another act.
    done: bool,
}

enum What {
    Send { escrow: Account },
    Receive { escrow: Account },
    Refund { escrow: Account, receiver: Option<Account> },
    DepositHere { sender: Option<Account>, amount: U256 },
    DepositArrives { recipient: Option<Account>, amount: U256 },
    WithdrawHere { amount: U256 },
    WithdrawalArrives { recipient: Option<Account>, amount: U256 },
}

impl Act {
    /// The acts of a transaction or of a block, in order.
    pub(super) fn all(reader: &Reader<'_>, events: &[Event<'_>]) -> Vec<Self> {
        let of = |event: &Event<'_>| Self::of(reader, events, event);
        events.iter().filter_map(of).collect()
    }

    fn of(reader: &Reader<'_>, events: &[Event<'_>], event: &Event<'_>) -> Option<Self> {
        let group = Group::of(event);
        let text = |key: &str| event.value(key).map(|text| &**text);
        let account = |key: &str| text(key).and_then(|text| reader.account(text));
        let number = |key: &str| text(key)?.parse().ok();
        let moved = || text("amount").and_then(amount);
        let packet = |end: &str| {
            let (port, channel) =
                (text(&format!("packet_{end}_port"))?, text(&format!("packet_{end}_channel"))?);
            let sequence = number("packet_sequence")?;
            let cause = Cause::Packet { port: port.to_owned(), channel: channel.to_owned(), sequence };
            Some((cause, escrow(port, channel)))
        };
        let (cause, what) = match event.kind.as_ref() {
            "send_packet" => packet("src").map(|(cause, escrow)| (cause, What::Send { escrow }))?,
            "recv_packet" => packet("dst").map(|(cause, escrow)| (cause, What::Receive { escrow }))?,
            "timeout_packet" | "acknowledge_packet" => {
                let (cause, escrow) = packet("src")?;
                let receiver = refunded(reader, events, group, event.kind == "timeout_packet")?;
                (cause, What::Refund { escrow, receiver })
            }
            "initiate_token_deposit" => (
                Cause::Deposit { bridge: number("bridge_id"), sequence: number("l1_sequence")? },
                What::DepositHere { sender: account("from"), amount: moved()? },
            ),
            "finalize_token_deposit" => (
                Cause::Deposit { bridge: None, sequence: number("l1_sequence")? },
                What::DepositArrives { recipient: account("recipient"), amount: moved()? },
            ),
            "initiate_token_withdrawal" => (
                Cause::Withdrawal { bridge: None, sequence: number("l2_sequence")? },
                What::WithdrawHere { amount: moved()? },
            ),
            "finalize_token_withdrawal" => (
                Cause::Withdrawal { bridge: number("bridge_id"), sequence: number("l2_sequence")? },
                What::WithdrawalArrives { recipient: account("to"), amount: moved()? },
            ),
            _ => return None,
        };
        Some(Self { group, cause, what, done: false })
    }

    /// The kind of `movement`, if it is a part of this act.
    pub(super) fn kind(&mut self, movement: &Movement) -> Option<Kind> {
        if self.done {
            return None;
        }
        let Movement { from, to, amount: moved, .. } = movement;
        // A bridge of the layer one has an account of 32 bytes, which no key and no module has.
        let is_bridge =
            |account: &Option<Account>| account.is_some_and(|account| account.as_bytes().len() == 32);
        let (transfer, opchild) = (Some(MODULES.transfer), Some(MODULES.opchild));
        let (kind, is_last) = match &self.what {
            // Vouchers go to the module, which burns them.
            What::Send { escrow } if *to == Some(*escrow) || to.is_none() => (Kind::IbcOut, true),
            What::Send { .. } if *to == transfer => (Kind::IbcOut, false),
            // They are minted for the module, which gives them on.
            What::Receive { escrow } if to.is_some() && (*from == Some(*escrow) || *from == transfer) => {
                (Kind::IbcIn, true)
            }
            What::Refund { escrow, receiver }
                if to.is_some()
                    && to == receiver
                    && (from.is_none() || *from == Some(*escrow) || *from == transfer) =>
            {
                (Kind::IbcRefund, true)
            }
            What::DepositHere { sender, amount } if from == sender && is_bridge(to) && moved == amount => {
                (Kind::BridgeOut, true)
            }
            What::DepositArrives { recipient, amount }
                if *from == opchild && to == recipient && moved == amount =>
            {
                (Kind::BridgeIn, true)
            }
            What::WithdrawHere { amount } if *to == opchild && moved == amount => (Kind::BridgeOut, true),
            What::WithdrawalArrives { recipient, amount }
                if is_bridge(from) && to == recipient && moved == amount =>
            {
                (Kind::BridgeIn, true)
            }
            _ => return None,
        };
        self.done = is_last;
        Some(kind)
    }
}

/// Who gets back what a packet of this group did not deliver; `None` if it was delivered.
#[expect(clippy::option_option, reason = "a refund to an unknown account is a refund")]
fn refunded(
    reader: &Reader<'_>,
    events: &[Event<'_>],
    group: Group,
    is_timeout: bool,
) -> Option<Option<Account>> {
    let of_group = |kind: &'static str| {
        events.iter().filter(move |event| event.kind == kind && Group::of(event) == group)
    };
    let read = |text: &crate::JsonText<'_>| reader.account(text);
    if is_timeout {
        return Some(of_group("timeout").find_map(|event| event.value("refund_receiver")).and_then(read));
    }
    of_group("fungible_token_packet").find(|event| event.value("error").is_some())?;
    Some(of_group("fungible_token_packet").find_map(|event| event.value("sender")).and_then(read))
}

/// The account that holds what has left through a channel: ADR 28 of the Cosmos SDK, with the version of ICS-20.
fn escrow(port: &str, channel: &str) -> Account {
    let hash = Sha256::new().chain_update(b"ics20-1\0").chain_update(port).chain_update("/");
    let hash: [u8; 32] = hash.chain_update(channel).finalize().into();
    let mut short = [0; 20];
    short.copy_from_slice(&hash[..20]);
    short.into()
}
