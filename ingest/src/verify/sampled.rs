//! Sampled comparison: heights derived again, against the stored rows.

use std::ops::RangeInclusive;

use futures_util::StreamExt as _;
use schema::audit::report::bytes;
use schema::audit::{Ground, Remedy, Report};
use schema::block::Blocks;
use schema::evm_tx::{EvmTxByHash, EvmTxs};
use schema::internal_tx::{Calls, CallsByHash, CallsByHeight};
use schema::meta::{BlockLane, CallLane};
use schema::msg_set::{MsgSetByNames, MsgSetByType, MsgSets};
use schema::nft::{NftLog, Questions, Refused, Waiting, question_height};
use schema::tx::{TxByHash, Txs};
use serde_json::Value;
use store::{Bounds, Key as _, Message, Order, Snapshot, Store as _, Table, TableSpec, Value as _};

use super::chain::{Chain, Derived};
use super::expected_rows::{self, Nfts};
use super::list_membership::{Members, Sequences};
use super::sample;
use crate::Error;

/// Heights that are derived at once.
const AT_ONCE: usize = 8;

/// Compares about `n` heights, and those that the report suspects.
pub(super) async fn heights(
    chain: &Chain,
    ground: &Ground<'_>,
    n: usize,
    report: &mut Report,
) -> Result<(), Error> {
    let (start, last) = (ground.identity.start_height, ground.blocks.height);
    let (earliest, latest) = (chain.status.earliest_height, chain.status.latest_height);
    if last >= start && (earliest > last || latest < start) {
        let remedy = "add an endpoint that has the database's heights, or verify with --offline";
        return Err(Error::NothingToCompare { earliest, latest, last, remedy });
    }
    let sampled = sample::heights(start, last, n, &report.plan.suspects);
    let (there, gone): (Vec<u64>, Vec<u64>) =
        sampled.into_iter().partition(|height| (earliest..=latest).contains(height));
    report.unchecked("heights that the node does not have", gone.len() as u64);
    let calls = ground.calls.as_ref().map(|lane| lane.complete_from..=lane.height);
    let before =
        |calls: &RangeInclusive<u64>| there.iter().filter(|height| **height < *calls.start()).count();
    let without = calls.as_ref().map_or(0, before);
    report
        .unchecked("heights whose internal transactions are missing: their state was pruned", without as u64);
    let derived = futures_util::stream::iter(there)
        .map(|height| (height, calls.as_ref().is_some_and(|calls| calls.contains(&height))))
        .map(|(height, with_frames)| async move { (height, chain.derive(height, with_frames).await) });
    let mut derived = std::pin::pin!(derived.buffered(AT_ONCE));
    let mut walk = Walk { chain, ground, nfts: Nfts::new(ground)?, members: Members::default() };
    while let Some((height, derived)) = derived.next().await {
        let Some(mut derived) = derived? else {
            report.unchecked("heights that the node has forgotten", 1);
            continue;
        };
        match walk.height(height, &mut derived, report).await {
            Ok(()) => report.checked("heights with the node", 1),
            // A row that it rests on is damaged, and was found to be.
            Err(Error::Schema(
                schema::Error::Record { .. } | schema::Error::Store(store::Error::Corrupt { .. }),
            )) => {
                report.unchecked("heights whose neighbours are damaged", 1);
            }
            Err(error) => return Err(error),
        }
    }
    walk.members.compare(ground, report)
}

struct Walk<'a> {
    chain: &'a Chain,
    ground: &'a Ground<'a>,
    nfts: Nfts,
    members: Members,
}

impl Walk<'_> {
    async fn height(&mut self, height: u64, derived: &mut Derived, report: &mut Report) -> Result<(), Error> {
        let (chain, ground) = (self.chain, self.ground);
        let Some(before) = before(ground, height)? else {
            report.unchecked("heights whose neighbours are damaged", 1);
            return Ok(());
        };
        let mut logs = true;
        if let Some(first) = derived.block.nfts.first() {
            self.nfts.go_to(height, ground, &*chain.scratch)?;
            logs = chain.remembers(height, &first.event).await;
            derived.block.answers = chain.answers(&derived.block).await?;
        }
        let calls = calls_before(ground, height)?;
        let made = expected_rows::rows(chain, ground, derived, (&before, &calls))?;
        let made = made.snapshot()?;
        let check = Check { ground, height, made: &*made };
        check.block(derived, report)?;
        check.records::<Txs>(report)?;
        check.records::<EvmTxs>(report)?;
        check.hashes(TxByHash::SPEC, report)?;
        check.hashes(EvmTxByHash::SPEC, report)?;
        for spec in [MsgSets::SPEC, MsgSetByNames::SPEC, MsgSetByType::SPEC] {
            check.rows(spec, report)?;
        }
        if derived.frames.is_some() {
            check.records::<Calls>(report)?;
            check.hashes(CallsByHash::SPEC, report)?;
            check.own_row(CallsByHeight::SPEC, report)?;
        }
        if logs && !check.is_open()? {
            check.own_row(NftLog::SPEC, report)?;
            check.rows(Refused::SPEC, report)?;
        } else {
            report.unchecked("logs of NFTs", 1);
        }
        let from = |before: u64, n: u64| before + 1..=before + n;
        let frames =
            derived.frames.as_ref().map(|frames| frames.txs.iter().map(|tx| tx.parties.len() as u64).sum());
        let sequences = Sequences {
            txs: from(before.txs, derived.block.txs.len() as u64),
            evm_txs: from(before.evm_txs, derived.block.evm_txs.len() as u64),
            calls: frames.map(|n| from(calls.calls, n)),
        };
        self.members.add(&*made, sequences)
    }
}

/// The lane as the block before `height` left it; `None` if that block is missing or damaged.
fn before(ground: &Ground<'_>, height: u64) -> Result<Option<BlockLane>, Error> {
    if height == ground.identity.start_height {
        return Ok(Some(BlockLane::default()));
    }
    let stored = ground.snapshot.get(Blocks::SPEC, &(height - 1).to_be_bytes())?;
    let row = stored.as_deref().and_then(Message::<schema::block::Block>::decode);
    Ok(row.map(|Message(block)| BlockLane {
        height: height - 1,
        txs: (block.first_tx + block.txs).saturating_sub(1),
        evm_txs: (block.first_evm_tx + block.evm_txs).saturating_sub(1),
        time: block.time,
        hash: Vec::new(),
    }))
}

/// The internal-transaction lane as the block before `height` left it.
fn calls_before(ground: &Ground<'_>, height: u64) -> Result<CallLane, Error> {
    let end = height.to_be_bytes();
    let bounds = Bounds { start: &[], end: Some(&end) };
    let last = ground.snapshot.scan(CallsByHeight::SPEC, bounds, Order::Desc, 1)?;
    let calls = match last.first() {
        None => 0,
        Some((key, value)) => {
            let (_, Message(row)) = store::table::decode_row::<CallsByHeight>(key, value)?;
            (row.first + row.count).saturating_sub(1)
        }
    };
    Ok(CallLane { height: height - 1, calls, ..CallLane::default() })
}

/// One height: expected rows against stored rows.
struct Check<'a> {
    ground: &'a Ground<'a>,
    height: u64,
    made: &'a dyn Snapshot,
}

impl Check<'_> {
    fn differs(
        &self,
        kind: &'static str,
        spec: &'static TableSpec,
        key: &[u8],
        (stored, expected): (Option<&[u8]>, Option<&[u8]>),
        report: &mut Report,
    ) {
        let words = expected.map_or_else(|| "nothing".to_owned(), bytes);
        report.row(kind, (spec, key, stored), words, Remedy::Index(self.height));
    }

    /// The block's row. The proposer is compared if the node knows the validator: validators come and go, and change
    /// names.
    fn block(&self, derived: &Derived, report: &mut Report) -> Result<(), Error> {
        let key = self.height.to_be_bytes();
        let (stored, made) =
            (self.ground.snapshot.get(Blocks::SPEC, &key)?, self.made.get(Blocks::SPEC, &key)?);
        let known = !derived.block.proposer.moniker.is_empty();
        if stored != made && comparable(stored.as_deref(), known) != comparable(made.as_deref(), known) {
            self.differs(
                "block unlike the chain's",
                Blocks::SPEC,
                &key,
                (stored.as_deref(), made.as_deref()),
                report,
            );
        }
        Ok(())
    }

    /// Every row of `spec` that the height makes is stored.
    fn rows(&self, spec: &'static TableSpec, report: &mut Report) -> Result<(), Error> {
        store::for_each_row(self.made, spec, Bounds::all(), |key, value| {
            let stored = self.ground.snapshot.get(spec, key)?;
            if stored.as_deref() != Some(value) {
                self.differs("row unlike the chain's", spec, key, (stored.as_deref(), Some(value)), report);
            }
            Ok(())
        })
    }

    /// Every hash row of the height is stored; it holds nothing beyond the record.
    fn hashes(&self, spec: &'static TableSpec, report: &mut Report) -> Result<(), Error> {
        store::for_each_row(self.made, spec, Bounds::all(), |key, value| {
            let stored = self.ground.snapshot.get(spec, key)?;
            if stored.as_deref() != Some(value) {
                let row = (spec, key, stored.as_deref());
                report.row("row unlike the chain's", row, bytes(value), Remedy::Row(Some(value.to_vec())));
            }
            Ok(())
        })
    }

    /// The row of this height, or that there is none.
    fn own_row(&self, spec: &'static TableSpec, report: &mut Report) -> Result<(), Error> {
        let key = self.height.to_be_bytes();
        let (stored, made) = (self.ground.snapshot.get(spec, &key)?, self.made.get(spec, &key)?);
        if stored != made {
            self.differs("row unlike the chain's", spec, &key, (stored.as_deref(), made.as_deref()), report);
        }
        Ok(())
    }

    /// Every record that the height makes is stored, however it is compressed.
    fn records<T: Table<Key = u64>>(&self, report: &mut Report) -> Result<(), Error> {
        store::for_each_row(self.made, T::SPEC, Bounds::all(), |key, value| {
            let seq = u64::from_bytes(key).unwrap_or_default();
            let read = |payload: &[u8]| {
                let mut record = Vec::new();
                self.ground.codec.decode_into(T::SPEC, seq, payload, &mut record).map(|()| record)
            };
            let expected = read(value)?;
            let stored = self.ground.snapshot.get(T::SPEC, key)?;
            // What does not decompress is shown as it is.
            let stored = stored.map(|stored| read(&stored).unwrap_or(stored));
            if stored.as_ref() != Some(&expected) {
                let sides = (stored.as_deref(), Some(expected.as_slice()));
                self.differs("record unlike the chain's", T::SPEC, key, sides, report);
            }
            Ok(())
        })
    }

    /// Whether questions about the height's NFTs are open, here or in the database.
    fn is_open(&self) -> Result<bool, Error> {
        let mut open = false;
        for side in [self.made, self.ground.snapshot] {
            store::for_each_row(side, Questions::SPEC, Bounds::all(), |key, _| {
                open |= u64::from_bytes(key).is_some_and(|number| question_height(number) == self.height);
                Ok::<(), Error>(())
            })?;
            store::for_each_row(side, Waiting::SPEC, Bounds::all(), |key, _| {
                let waiting = <Waiting as Table>::Key::from_bytes(key);
                open |= waiting.is_some_and(|(_, height, _)| height == self.height);
                Ok::<(), Error>(())
            })?;
        }
        Ok(open)
    }
}

/// A block's row without what may change; `None` if it does not decode.
fn comparable(row: Option<&[u8]>, proposer_is_known: bool) -> Option<(schema::block::Block, Value)> {
    let Message(mut block) = Message::<schema::block::Block>::decode(row?)?;
    let mut json: Value = serde_json::from_slice(&block.json).ok()?;
    block.json.clear();
    let proposer = json.get_mut("proposer").and_then(Value::as_object_mut)?;
    proposer.remove("moniker");
    if !proposer_is_known {
        proposer.clear();
    }
    Some((block, json))
}
