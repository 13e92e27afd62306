//! The cases: many distinct requests each, the same in every run.

use anyhow::Result;
use benches::client::get;
use benches::pick::Pick;
use benches::recorded::{longest, raw_txs};
use query::cursor::{Cursor, Space, encode};
use replay::Recording;
use schema::evm_tx::AccountEvmTxs;
use schema::internal_tx::AccountCalls;
use schema::msg_set;
use schema::tx::{AccountTxs, SetTxs};
use store::Snapshot;

/// Maximum number of distinct requests of a case.
const DISTINCT: u64 = 20_000;

/// Rows of a page.
const PAGE: u64 = 100;

/// One kind of request.
pub(crate) struct Case {
    /// Its name.
    pub(crate) name: &'static str,
    /// The requests, to be sent in turn.
    pub(crate) requests: Vec<Vec<u8>>,
    /// Whether the response is a page; then fewer requests are enough.
    pub(crate) page: bool,
}

/// The case of the status.
pub(crate) const STATUS: &str = "status";
/// The case of one transaction.
pub(crate) const BY_HASH: &str = "tx by hash";
/// The case of pages of the account with most transactions.
pub(crate) const ACCOUNT: &str = "account's txs, random offset";
/// The same without the total.
pub(crate) const UNCOUNTED: &str = "account's txs, no total";
/// The same, oldest first.
pub(crate) const ASCENDING: &str = "account's txs, ascending";
/// The first page of that account.
pub(crate) const SHALLOW: &str = "account's txs, offset 0";
/// Its last ones.
pub(crate) const DEEP: &str = "account's txs, deepest offsets";
/// Message types of a filter: those of nearly all transactions, and of few.
const MESSAGE_TYPES: [&str; 2] = ["minievm.evm.v1.MsgCall", "minievm.evm.v1.MsgCreate"];

/// All cases on the chain of `recording`, whose database is `snapshot`.
pub(crate) fn all(recording: &Recording, snapshot: &dyn Snapshot) -> Result<Vec<Case>> {
    let ((account, _), txs) = longest::<AccountTxs>(snapshot)?;
    let ((evm_account, _), evm_txs) = longest::<AccountEvmTxs>(snapshot)?;
    let (caller, calls) = longest::<AccountCalls>(snapshot)?;
    let recorded = recording.summary();
    let mut pick = Pick::seeded(3);

    let of_account = format!("/indexer/tx/v1/txs/by_account/{}?pagination.limit={PAGE}", account.0.to_hex());
    let offsets: Vec<u64> = (0..DISTINCT).map(|_| pick.below(txs - PAGE)).collect();
    let at_offsets = |more: &str| -> Vec<String> {
        offsets.iter().map(|offset| format!("{of_account}&pagination.offset={offset}{more}")).collect()
    };
    let deepest = (0..PAGE).map(|more| format!("{of_account}&pagination.offset={}", txs - 2 * PAGE + more));
    let mut offset_pages = |path: &str, len: u64| -> Vec<String> {
        let page = |_| format!("{path}?pagination.limit={PAGE}&pagination.offset={}", pick.below(len - PAGE));
        (0..DISTINCT).map(page).collect()
    };
    let of_evm_account =
        offset_pages(&format!("/indexer/tx/v1/evm-txs/by_account/{}", evm_account.0.to_hex()), evm_txs);
    let of_caller =
        offset_pages(&format!("/indexer/tx/v1/evm-internal-txs/by_account/{}", caller.0.to_hex()), calls);
    let filtered = format!("&msgs={}", MESSAGE_TYPES.join(","));
    let of_types = offset_pages("/indexer/tx/v1/txs", n_txs_of(&MESSAGE_TYPES, snapshot)?);
    let of_types = of_types.into_iter().map(|page| page + &filtered).collect();
    let txs_at = cursor_pages("/indexer/tx/v1/txs", Space::Txs, recorded.txs, &mut pick);
    let evm_txs_at = cursor_pages("/indexer/tx/v1/evm-txs", Space::EvmTxs, recorded.evm_txs, &mut pick);

    Ok(vec![
        Case::small(STATUS, vec!["/status".to_owned()]),
        Case::small(BY_HASH, by_hash(recording, &mut pick)?),
        Case::page("txs, random cursor", txs_at),
        Case::page(ACCOUNT, at_offsets("")),
        Case::page(UNCOUNTED, at_offsets("&pagination.count_total=false")),
        Case::page(ASCENDING, at_offsets("&pagination.reverse=false")),
        Case::page(SHALLOW, vec![format!("{of_account}&pagination.offset=0")]),
        Case::page(DEEP, deepest.collect()),
        Case::page("txs of two message types, random offset", of_types),
        Case::page("EVM txs, random cursor", evm_txs_at),
        Case::page("account's EVM txs, random offset", of_evm_account),
        Case::page("account's internal txs, random offset", of_caller),
    ])
}

impl Case {
    fn small(name: &'static str, targets: Vec<String>) -> Self {
        Self { name, requests: targets.iter().map(|target| get(target)).collect(), page: false }
    }

    fn page(name: &'static str, targets: Vec<String>) -> Self {
        Self { page: true, ..Self::small(name, targets) }
    }
}

/// Number of transactions that have one of the message types.
fn n_txs_of(types: &[&str], snapshot: &dyn Snapshot) -> Result<u64> {
    let types: Vec<String> = types.iter().map(|&name| name.to_owned()).collect();
    let sets = msg_set::containing_any(snapshot, &types, usize::MAX)?.unwrap_or_default();
    Ok(store::list::lens::<SetTxs>(snapshot, &sets)?.iter().sum())
}

/// Every transaction by its hash, shuffled.
fn by_hash(recording: &Recording, pick: &mut Pick) -> Result<Vec<String>> {
    let target =
        |raw: &Vec<u8>| format!("/indexer/tx/v1/txs/{}", chain::hash::to_hex(&chain::hash::tx_hash(raw)));
    let mut targets: Vec<String> = raw_txs(recording)?.iter().map(target).collect();
    pick.shuffle(&mut targets);
    Ok(targets)
}

/// Pages of a list of all rows, each after a random row that is followed by a whole page.
fn cursor_pages(path: &str, space: Space, len: u64, pick: &mut Pick) -> Vec<String> {
    let page = |_| {
        let after = Cursor::After(PAGE + 1 + pick.below(len - PAGE));
        format!("{path}?pagination.limit={PAGE}&pagination.key={}", encode(space, after))
    };
    (0..DISTINCT).map(page).collect()
}
