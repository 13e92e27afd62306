//! The accounts of a recording: the sequence of each at any height, derived from the events of its transactions.
//!
//! A transaction that passes the ante handler has an event `tx.acc_seq` for each signer, `address/sequence`, with the
//! sequence before it. The sequence in the state of a height is therefore that of the account's next transaction; after
//! its last one it is one more. A transaction with several EVM messages uses several sequences, and only the account's
//! next transaction shows how many.

use std::collections::{BTreeMap, HashMap};

use chain::Account;
use chain::comet::parse_results;
use serde::Deserialize;
use serde_json::Value;

use super::{Height, StateReplies};

/// The list of all accounts, page by page.
const LIST: &str = "/cosmos/auth/v1beta1/accounts";

/// Sequences and JSON of accounts.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    /// For each signer, the sequence before its first transaction of a height, and the one after its last.
    sequences: HashMap<Account, BTreeMap<u64, Sequences>>,
    /// The node's JSON by bech32 address.
    listed: HashMap<String, Value>,
}

#[derive(Debug, Clone, Copy)]
struct Sequences {
    before: u64,
    after: u64,
}

impl Accounts {
    pub(super) fn collect(heights: impl Iterator<Item = Height>, state: &StateReplies) -> Self {
        let mut accounts = Self::default();
        for height in heights {
            match parse_results(&height.block_results) {
                Ok(results) => {
                    let events = results.txs_results.iter().flat_map(|result| &result.events);
                    let signed = events.filter(|event| event.kind == "tx");
                    signed.filter_map(|event| event.value("acc_seq")).for_each(|value| {
                        accounts.add(height.height, value);
                    });
                }
                Err(e) => {
                    tracing::warn!(height = height.height, "the sequences of this block are not known: {e}");
                }
            }
        }
        for page in state.pages(LIST) {
            accounts.add_page(&page.body);
        }
        accounts
    }

    fn add(&mut self, height: u64, value: &str) {
        let Some((address, sequence)) = value.rsplit_once('/') else { return };
        let (Some(account), Ok(sequence)) = (parse(address), sequence.parse::<u64>()) else { return };
        let of_height = self.sequences.entry(account).or_default().entry(height);
        let after = sequence.saturating_add(1);
        of_height.or_insert(Sequences { before: sequence, after }).after = after;
    }

    fn add_page(&mut self, body: &[u8]) {
        #[derive(Deserialize)]
        struct Page {
            accounts: Vec<Value>,
        }
        let page = serde_json::from_slice(body).unwrap_or(Page { accounts: Vec::new() });
        for account in page.accounts {
            if let Some(address) = base(&account)["address"].as_str() {
                self.listed.insert(address.to_owned(), account);
            }
        }
    }

    /// The sequence of an account in the state of a height; none if it never signed a transaction.
    fn sequence(&self, account: &Account, height: u64) -> Option<u64> {
        let heights = self.sequences.get(account)?;
        let next = heights.range(height.saturating_add(1)..).next().map(|(_, of_height)| of_height.before);
        next.or_else(|| heights.values().next_back().map(|of_height| of_height.after))
    }

    /// The JSON of an account in the state of a height; none if it never signed a transaction. For an account that was
    /// never listed it has only address and sequence.
    pub(crate) fn json(&self, address: &str, height: u64) -> Option<Value> {
        let sequence = self.sequence(&parse(address)?, height)?;
        let unlisted =
            || serde_json::json!({ "@type": "/cosmos.auth.v1beta1.BaseAccount", "address": address });
        let mut account = self.listed.get(address).cloned().unwrap_or_else(unlisted);
        let inner =
            if account.get("base_account").is_some() { &mut account["base_account"] } else { &mut account };
        inner["sequence"] = sequence.to_string().into();
        Some(account)
    }
}

/// The base account within a contract's or module's account.
fn base(account: &Value) -> &Value {
    account.get("base_account").unwrap_or(account)
}

/// An address in bech32 with any prefix, or in hex.
fn parse(address: &str) -> Option<Account> {
    let prefix = address.rsplit_once('1').map_or("", |(prefix, _)| prefix);
    Account::parse(address, prefix)
}
