//! Check of lists against their stored lengths and the last sequences of their lanes. The list of a token's
//! transactions is derived from the NFT log.

use store::value::Value as _;
use store::{COUNT, TableSpec};

use super::members::bytes;
use super::{AuditContext, Check, Finding, Report};
use crate::{Error, evm_tx, internal_tx, tx};

/// One check for each list.
pub(super) fn checks<'a>(context: &'a AuditContext<'_>) -> Vec<Check<'a>> {
    let (last_tx, last_evm) = (context.blocks.txs, context.blocks.evm_txs);
    let of =
        |lists: &[&'static TableSpec], last| lists.iter().map(move |spec| (*spec, last)).collect::<Vec<_>>();
    let lists =
        [of(&internal_tx::LISTS, context.last_call()), of(&evm_tx::LISTS, last_evm), of(&tx::LISTS, last_tx)];
    let check = |(spec, last)| -> Check<'a> { Box::new(move |report| list(context, spec, last, report)) };
    lists.into_iter().flatten().map(check).collect()
}

fn list(
    context: &AuditContext<'_>,
    spec: &'static TableSpec,
    last: u64,
    report: &mut Report,
) -> Result<(), Error> {
    store::list::audit(context.snapshot, spec, last, |found| {
        let is_length = found.table == COUNT;
        let stored = match found.found.as_deref() {
            None => "nothing".to_owned(),
            Some(value) if is_length => {
                u64::decode(value).map_or_else(|| bytes(value), |len| len.to_string())
            }
            Some(value) => store::list::values(value).map_or_else(|| bytes(value), |row| format!("{row:?}")),
        };
        report.add(Finding {
            kind: if is_length { "length of a list" } else { "entries of a list" },
            expected: if is_length { format!("{} in {}", found.expected, spec.name) } else { found.expected },
            table: found.table,
            key: found.key,
            stored,
        });
    })?;
    report.checked("lists", 1);
    Ok(())
}
