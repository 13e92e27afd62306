//! Check of lists against their stored lengths and the last sequences of their lanes.

use store::value::Value as _;
use store::{COUNT, List};

use super::{Finding, Ground, Remedy, Report, same};
use crate::Error;
use crate::audit::report::bytes;
use crate::evm_tx::AccountEvmTxs;
use crate::internal_tx::AccountCalls;
use crate::nft::TokenTxs;
use crate::tx::{AccountSetTxs, AccountTxs, SetTxs};

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let txs = |seq| Remedy::Index(ground.heights.of_tx(seq));
    let (last_tx, last_evm) = (ground.blocks.txs, ground.blocks.evm_txs);
    list::<AccountTxs>(ground, last_tx, &txs, report)?;
    list::<AccountSetTxs>(ground, last_tx, &txs, report)?;
    list::<SetTxs>(ground, last_tx, &txs, report)?;
    list::<AccountEvmTxs>(ground, last_evm, &|seq| Remedy::Index(ground.heights.of_evm_tx(seq)), report)?;
    let calls = |seq| Remedy::Index(ground.heights.of_call(seq));
    list::<AccountCalls>(ground, ground.last_call(), &calls, report)?;
    // Derived from the NFT log.
    list::<TokenTxs>(ground, last_tx, &|_| Remedy::Nfts, report)
}

fn list<L: List>(
    ground: &Ground<'_>,
    last: u64,
    remedy: &dyn Fn(u64) -> Remedy,
    report: &mut Report,
) -> Result<(), Error> {
    store::list::audit(ground.snapshot, L::SPEC, last, |fault| {
        let of_count = same(fault.table, COUNT);
        let kind = if of_count { "length of a list" } else { "entry of a list" };
        let stored = match fault.found.as_deref() {
            None => "nothing".to_owned(),
            Some(found) => u64::decode(found).map_or_else(|| bytes(found), |number| number.to_string()),
        };
        let expected =
            if of_count { format!("{} in {}", fault.expected, L::SPEC.name) } else { fault.expected };
        report.add(Finding {
            kind,
            table: fault.table,
            stored,
            expected,
            key: fault.key,
            remedy: remedy(fault.from),
        });
    })?;
    report.checked("lists", 1);
    Ok(())
}
