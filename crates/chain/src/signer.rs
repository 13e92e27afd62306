//! Signers of a transaction.
//!
//! Every signer counts, in the order of the transaction; the first is the one whom the deployed server calls *the*
//! signer. There is always an answer, at worst an empty one (indexing 5.3, T2, T12).

use crate::account_set::AccountSet;
use crate::address::Account;
use crate::comet::Event;
use crate::key::KeyCache;
use crate::tx::DecodedTx;

/// The distinct signers of a transaction.
///
/// A signer whose key is given has the key's address. One whose key is left out or of an unknown type is named by the
/// transaction's `acc_seq` event at its position; failing that, all accounts that `message_signers` returns are taken
/// (those in the signer fields of the first message: the descriptors say which these are, so the caller knows). If
/// no signer was found in any of these ways, the first `message.sender` is.
pub fn signers(
    tx: &DecodedTx,
    events: &[Event<'_>],
    message_signers: impl FnOnce() -> Vec<Account>,
    prefix: &str,
    keys: &mut KeyCache,
) -> Vec<Account> {
    let mut found = AccountSet::new();
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
        missing = found.as_slice().is_empty();
    }
    if missing {
        found.extend(message_signers());
    }
    if found.as_slice().is_empty() {
        found.extend(message_sender(events, prefix));
    }
    found.as_slice().to_vec()
}

/// The accounts of the `acc_seq` attributes (`address/sequence`), which the ante handler emits one a signer, in order.
fn sequence_accounts<'e>(events: &'e [Event<'_>], prefix: &'e str) -> impl Iterator<Item = Account> + 'e {
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
