//! Check that every row decodes as the types of its table.

use store::{Bounds, List, Ranked, Table, TableSpec};

use super::{Ground, Remedy, Report, same};
use crate::Error;
use crate::descriptors::Descriptors;
use crate::meta::Meta;
use crate::nft::rebuild::FOLDED;
use crate::nft::{NameChanges, NftLog};
use crate::payload::Dictionary;
use crate::rich::{Balances, Denoms, DenomsFolded, Erc20s, Holders, NewContracts, RichUndo};
use crate::undo::UndoRecords;
use crate::{block, internal_tx, msg_set, tx};

pub(super) fn check(ground: &Ground<'_>, report: &mut Report) -> Result<(), Error> {
    let mut rows = Rows { ground, report, outcome: Ok(()) };
    crate::visit(&mut rows);
    rows.outcome
}

struct Rows<'r, 'g> {
    ground: &'r Ground<'g>,
    report: &'r mut Report,
    outcome: Result<(), Error>,
}

impl crate::Visitor for Rows<'_, '_> {
    fn table<T: Table>(&mut self) {
        if self.outcome.is_ok() {
            self.outcome = self.rows::<T>();
        }
    }

    // The check of lists covers their rows.
    fn list<L: List>(&mut self) {}

    fn ranked<R: Ranked>(&mut self) {
        self.table::<R>();
    }
}

impl Rows<'_, '_> {
    fn rows<T: Table>(&mut self) -> Result<(), Error> {
        let mut n = 0;
        store::for_each_row(self.ground.snapshot, T::SPEC, Bounds::all(), |key, value| {
            n += 1;
            if store::table::decode_row::<T>(key, value).is_err() {
                let remedy = remedy(self.ground, T::SPEC, key);
                self.report.row(
                    "row does not decode",
                    (T::SPEC, key, Some(value)),
                    "a row of its table's form",
                    remedy,
                );
            }
            Ok::<(), Error>(())
        })?;
        self.report.checked("rows", n);
        Ok(())
    }
}

/// The remedy for a row that does not decode. Other checks report the row as missing, with its expected value.
fn remedy(ground: &Ground<'_>, spec: &'static TableSpec, key: &[u8]) -> Remedy {
    let is_one_of = |specs: &[&'static TableSpec]| specs.iter().any(|other| same(other, spec));
    let number = <[u8; 8]>::try_from(key).map(u64::from_be_bytes);
    let start = ground.identity.start_height;
    if is_one_of(&FOLDED) {
        return Remedy::Nfts;
    }
    if is_one_of(&[Erc20s::SPEC, NewContracts::SPEC, Balances::SPEC, Denoms::SPEC, RichUndo::SPEC]) {
        return Remedy::RichList;
    }
    if is_one_of(&[
        tx::TxByHash::SPEC,
        crate::evm_tx::EvmTxByHash::SPEC,
        internal_tx::CallsByHash::SPEC,
        msg_set::MsgSets::SPEC,
        msg_set::MsgSetByNames::SPEC,
        msg_set::MsgSetByType::SPEC,
        Holders::SPEC,
        DenomsFolded::SPEC,
        NameChanges::SPEC,
        UndoRecords::SPEC,
    ]) {
        return Remedy::Row(None);
    }
    if is_one_of(&[Meta::SPEC, Dictionary::SPEC, Descriptors::SPEC]) {
        return Remedy::None;
    }
    let height = match number {
        Ok(seq) if is_one_of(&[tx::Txs::SPEC]) => ground.heights.of_tx(seq),
        Ok(seq) if is_one_of(&[crate::evm_tx::EvmTxs::SPEC]) => ground.heights.of_evm_tx(seq),
        Ok(seq) if is_one_of(&[internal_tx::Calls::SPEC]) => ground.heights.of_call(seq),
        Ok(height) if is_one_of(&[block::Blocks::SPEC, internal_tx::CallsByHeight::SPEC, NftLog::SPEC]) => {
            height
        }
        Ok(_) | Err(_) => start,
    };
    Remedy::Index(height.clamp(start, ground.blocks.height.max(start)))
}
