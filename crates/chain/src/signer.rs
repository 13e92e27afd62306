//! Signers of a transaction.
//!
//! Every signer counts, in the order of the transaction; the first is the signer of the deployed server. The result may
//! be empty but is never an error.

use crate::address::{Account, AccountSet};
use crate::comet::Event;
use crate::key::KeyCache;
use crate::tx::DecodedTx;

/// The distinct signers of a transaction.
///
/// A signer whose key is given has the key's address. If the key is left out or of an unknown type, the transaction's
/// `acc_seq` event at the signer's position gives the account; failing that, all accounts that `message_signers`
/// returns are taken (those in the signer fields of the first message, according to the descriptors). If none of these
/// gives a signer, the first `message.sender` is taken.
pub fn signers(
    tx: &DecodedTx,
    events: &[Event<'_>],
    message_signers: impl FnOnce() -> Vec<Account>,
    prefix: &str,
    keys: &mut KeyCache,
) -> Vec<Account> {
    let mut found = AccountSet::default();
    let mut missing = tx.signer_infos.is_empty();
    for (position, info) in tx.signer_infos.iter().enumerate() {
        let key = info.public_key.as_ref();
        let by_key = key.and_then(|key| keys.address(&key.type_url, &key.value));
        match by_key.or_else(|| sequence_accounts(events, prefix).nth(position)) {
            Some(account) => {
                found.insert(account);
            }
            None => missing = true,
        }
    }
    if tx.signer_infos.is_empty() {
        found.extend(sequence_accounts(events, prefix));
        missing = found.is_empty();
    }
    if missing {
        found.extend(message_signers());
    }
    if found.is_empty() {
        found.extend(message_sender(events, prefix));
    }
    found.into_iter().collect()
}

/// The accounts of the `acc_seq` attributes (`address/sequence`), which the ante handler emits once per signer, in
/// order.
pub fn sequence_accounts<'e>(events: &'e [Event<'_>], prefix: &'e str) -> impl Iterator<Item = Account> + 'e {
    attributes(events, "tx", "acc_seq")
        .filter_map(|value| value.rsplit_once('/'))
        .filter_map(move |(account, _)| Account::parse(account, prefix))
}

fn message_sender(events: &[Event<'_>], prefix: &str) -> Option<Account> {
    attributes(events, "message", "sender").find_map(|value| Account::parse(value, prefix))
}

fn attributes<'e>(events: &'e [Event<'_>], kind: &'e str, key: &'e str) -> impl Iterator<Item = &'e str> {
    let of_kind = events.iter().filter(move |event| event.kind == kind);
    of_kind.flat_map(|event| &event.attributes).filter(move |a| a.key == key).map(|a| a.value.as_ref())
}
