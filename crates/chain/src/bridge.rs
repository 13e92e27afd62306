//! Events of OPinit bridges: those of a rollup (`x/opchild`), and those of the layer one (`x/ophost`).
//!
//! Only these modules emit them: contracts have event types of their own. Texts stay as the event has them, because proofs are over
//! texts; the receiver of a refused deposit is no address.

pub mod tree;

use memchr::memmem;

use crate::comet::Event;

/// One event of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BridgeEvent {
    /// On a rollup: its bridge was set or changed.
    Info {
        /// The bridge.
        bridge: u64,
        /// The Cosmos id of the layer one.
        l1_chain_id: String,
    },
    /// On a rollup: tokens leave for the layer one.
    Withdrawal(Withdrawal),
    /// On a rollup: tokens have arrived from the layer one, or were refused.
    Finalized(FinalizedDeposit),
    /// On a layer one: a bridge was created, or one of its operators changed. Only what the event names is there.
    Bridge(BridgeChange),
    /// On a layer one: the state of a rollup was proposed.
    Proposed(Proposal),
    /// On a layer one: an output and all later ones of its bridge were deleted.
    Deleted {
        /// The bridge.
        bridge: u64,
        /// The first deleted output.
        output: u64,
        /// Who deleted it.
        challenger: String,
    },
    /// On a layer one: tokens leave for a rollup.
    Deposit(Deposit),
    /// On a layer one: a withdrawal was paid out.
    Claim(Claim),
    /// On a layer one: blocks of a rollup were published.
    Batch {
        /// Who published them; the event does not name the bridge.
        submitter: String,
    },
}

/// `initiate_token_withdrawal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// Counts the withdrawals of the rollup, from 1.
    pub sequence: u64,
    /// The sender; of a refused deposit its receiver, which may be any text.
    pub from: String,
    /// The receiver on the layer one.
    pub to: String,
    /// The denom on the rollup.
    pub denom: String,
    /// The denom on the layer one.
    pub base_denom: String,
    /// Decimal.
    pub amount: String,
}

/// `finalize_token_deposit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalizedDeposit {
    /// Counts the deposits of the bridge, from 1.
    pub l1_sequence: u64,
    /// The sender on the layer one.
    pub from: String,
    /// The receiver, which may be any text.
    pub to: String,
    /// The denom on the rollup.
    pub denom: String,
    /// The denom on the layer one.
    pub base_denom: String,
    /// Decimal.
    pub amount: String,
    /// The block of the layer one.
    pub l1_height: u64,
    /// What became of it.
    pub outcome: Outcome,
    /// The reason if it did not succeed.
    pub reason: String,
}

/// What became of a deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The tokens arrived, and its hook, if there is one, ran.
    Arrived,
    /// The tokens arrived; the hook failed.
    HookFailed,
    /// The receiver could not get them: a withdrawal in the same message returns them.
    Refunded,
}

/// `create_bridge`, `update_proposer`, `update_challenger`, `update_batch_info`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgeChange {
    /// The bridge.
    pub bridge: u64,
    /// Who created it.
    pub creator: Option<String>,
    /// Who may propose outputs.
    pub proposer: Option<String>,
    /// Who may delete them.
    pub challenger: Option<String>,
    /// Who publishes the blocks.
    pub submitter: Option<String>,
    /// Where they are published.
    pub batch_chain: Option<String>,
}

/// `propose_output`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The bridge.
    pub bridge: u64,
    /// Counts the outputs of the bridge, from 1; that of a deleted one is used again.
    pub output: u64,
    /// The last block of the rollup that it covers.
    pub l2_block: u64,
    /// The output root ([`tree::output_root`]).
    pub root: [u8; 32],
    /// Who proposed it.
    pub proposer: String,
}

/// `initiate_token_deposit`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deposit {
    /// The bridge.
    pub bridge: u64,
    /// Counts the deposits of the bridge, from 1.
    pub l1_sequence: u64,
    /// The sender.
    pub from: String,
    /// The receiver on the rollup, which may be any text.
    pub to: String,
    /// The denom on the layer one.
    pub l1_denom: String,
    /// The denom on the rollup.
    pub l2_denom: String,
    /// Decimal.
    pub amount: String,
    /// The hook, a transaction for the rollup, in hex.
    pub data: String,
}

/// `finalize_token_withdrawal`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The bridge.
    pub bridge: u64,
    /// The output that proves the withdrawal.
    pub output: u64,
    /// The number of the withdrawal on the rollup.
    pub sequence: u64,
    /// The sender on the rollup.
    pub from: String,
    /// The receiver.
    pub to: String,
    /// The denom on the layer one.
    pub l1_denom: String,
    /// The denom on the rollup.
    pub l2_denom: String,
    /// Decimal.
    pub amount: String,
}

/// Parts of the types of all events that are read; most records have none of them.
const MARKS: [&[u8]; 6] =
    [b"\"initiate_token_", b"\"finalize_token_", b"_bridge", b"_output\"", b"\"record_batch\"", b"\"update_"];

/// False if a record, or a list of events, has no event of a bridge.
pub fn may_have_events(record: &[u8]) -> bool {
    MARKS.iter().any(|mark| memmem::find(record, mark).is_some())
}

/// Why an event is not one of a bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is of another kind.
    Other,
    /// A member that the module writes is missing or invalid.
    Invalid,
}

impl BridgeEvent {
    /// Reads an event, if it is a valid one of a bridge.
    pub fn read(event: &Event<'_>) -> Option<Self> {
        Self::try_read(event).ok()
    }

    /// Reads an event.
    ///
    /// # Errors
    /// The reason why it is not one of a bridge.
    pub fn try_read(event: &Event<'_>) -> Result<Self, Unread> {
        let optional = |key: &str| event.value(key).map(ToString::to_string);
        let text = |key: &str| optional(key).unwrap_or_default();
        let number =
            |key: &str| event.value(key).and_then(|value| value.parse::<u64>().ok()).ok_or(Unread::Invalid);
        let bridge = || number("bridge_id");
        Ok(match event.kind.as_ref() {
            "set_bridge_info" => Self::Info { bridge: bridge()?, l1_chain_id: text("l1_chain_id") },
            "initiate_token_withdrawal" => Self::Withdrawal(Withdrawal {
                sequence: number("l2_sequence")?,
                from: text("from"),
                to: text("to"),
                denom: text("denom"),
                base_denom: text("base_denom"),
                amount: text("amount"),
            }),
            "finalize_token_deposit" => Self::Finalized(FinalizedDeposit {
                l1_sequence: number("l1_sequence")?,
                from: text("sender"),
                to: text("recipient"),
                denom: text("denom"),
                base_denom: text("base_denom"),
                amount: text("amount"),
                l1_height: number("finalize_height").unwrap_or_default(),
                outcome: outcome(&text("success"), &text("reason")),
                reason: text("reason"),
            }),
            "create_bridge" | "update_proposer" | "update_challenger" | "update_batch_info" => {
                Self::Bridge(BridgeChange {
                    bridge: bridge()?,
                    creator: optional("creator"),
                    proposer: optional("proposer"),
                    challenger: optional("challenger"),
                    submitter: optional("batch_submitter"),
                    batch_chain: optional("batch_chain_type"),
                })
            }
            "propose_output" => {
                let mut root = [0; 32];
                hex::decode_to_slice(text("output_root"), &mut root).map_err(|_| Unread::Invalid)?;
                Self::Proposed(Proposal {
                    bridge: bridge()?,
                    output: number("output_index")?,
                    l2_block: number("l2_block_number")?,
                    root,
                    proposer: text("proposer"),
                })
            }
            "delete_output" => Self::Deleted {
                bridge: bridge()?,
                output: number("output_index")?,
                challenger: text("challenger"),
            },
            "initiate_token_deposit" => Self::Deposit(Deposit {
                bridge: bridge()?,
                l1_sequence: number("l1_sequence")?,
                from: text("from"),
                to: text("to"),
                l1_denom: text("l1_denom"),
                l2_denom: text("l2_denom"),
                amount: text("amount"),
                data: text("data"),
            }),
            "finalize_token_withdrawal" => Self::Claim(Claim {
                bridge: bridge()?,
                output: number("output_index")?,
                sequence: number("l2_sequence")?,
                from: text("from"),
                to: text("to"),
                l1_denom: text("l1_denom"),
                l2_denom: text("l2_denom"),
                amount: text("amount"),
            }),
            "record_batch" => Self::Batch { submitter: optional("submitter").ok_or(Unread::Invalid)? },
            _ => return Err(Unread::Other),
        })
    }
}

/// `success=false` has two meanings, which only the beginning of the reason distinguishes.
fn outcome(success: &str, reason: &str) -> Outcome {
    match success {
        "true" => Outcome::Arrived,
        _ if reason.starts_with("hook failed;") => Outcome::HookFailed,
        _ => Outcome::Refunded,
    }
}

/// When claims against an output are accepted, in nanoseconds since 1970: the layer one compares whole seconds of block times.
pub fn claimable_at(proposed: i64, period_seconds: u64) -> i64 {
    const NANOS: i64 = 1_000_000_000;
    let period = i64::try_from(period_seconds).unwrap_or(i64::MAX);
    proposed.div_euclid(NANOS).saturating_add(period).saturating_mul(NANOS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_accepted_from_the_whole_second_on() {
        assert_eq!(claimable_at(1_900_000_000, 20), 21_000_000_000);
        assert_eq!(claimable_at(i64::MAX, u64::MAX), i64::MAX);
    }

    #[test]
    fn a_failed_deposit_has_arrived_or_not() {
        assert_eq!(outcome("true", ""), Outcome::Arrived);
        assert_eq!(outcome("false", "hook failed; Failed to run AnteHandler"), Outcome::HookFailed);
        assert_eq!(outcome("false", "deposit failed; failed to convert recipient"), Outcome::Refunded);
    }

    #[test]
    fn an_undone_event_is_none() {
        let json = r#"{"type":"ibccallbackerror-initiate_token_withdrawal","attributes":[{"key":"l2_sequence","value":"1"}]}"#;
        let event: Event<'_> = serde_json::from_str(json).unwrap();
        assert_eq!(BridgeEvent::try_read(&event), Err(Unread::Other));
    }

    #[test]
    fn an_event_with_an_invalid_number_is_invalid_and_still_of_a_bridge() {
        for kind in [
            "set_bridge_info",
            "initiate_token_withdrawal",
            "finalize_token_deposit",
            "create_bridge",
            "update_proposer",
            "update_challenger",
            "update_batch_info",
            "propose_output",
            "delete_output",
            "initiate_token_deposit",
            "finalize_token_withdrawal",
            "record_batch",
        ] {
            let json = format!(
                r#"{{"type":"{kind}","attributes":[{{"key":"bridge_id","value":"-1"}},{{"key":"l1_sequence","value":"x"}},{{"key":"l2_sequence","value":""}}]}}"#
            );
            let event: Event<'_> = serde_json::from_str(&json).unwrap();
            assert_eq!(BridgeEvent::try_read(&event), Err(Unread::Invalid), "{kind}");
            assert!(may_have_events(json.as_bytes()), "{kind}");
        }
    }
}
