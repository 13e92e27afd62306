//! The records of bridges: withdrawals with their proofs, deposits, outputs.

use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Timestamp;
use chain::bridge::{claimable_at, tree};
use schema::bridge_output::{self, Comparison, L1Claim, L1State, Output};
use schema::opchild::{self, Arrival, BridgeState, Finalized, Source, Withdrawals};
use schema::ophost::{L1Deposit, OneProposal, PaidWithdrawal, ProposedOutput};
use store::{Message, Snapshot, Table as _};
use web::http_error::HttpError;

use crate::record::missing;
use crate::v1::{BridgeClaim, BridgeDeposit, BridgeOutput, BridgeWithdrawal, Coin};

/// What the records of a rollup's bridge are made with.
pub(crate) struct Records<'a> {
    pub(crate) snapshot: &'a dyn Snapshot,
    /// What the rollup says of its bridge.
    pub(crate) state: BridgeState,
    /// What the layer one says; `None` while there is no reply of it.
    pub(crate) l1: Option<L1State>,
    /// Nanoseconds since 1970 UTC.
    pub(crate) now: i64,
}

/// How far a withdrawal is; the order of the variants is that of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// No output covers it.
    Waiting,
    /// An output covers it.
    Proposed,
    /// It can be claimed.
    Final,
    /// It was claimed.
    Claimed,
}

impl Stage {
    pub(crate) const ALL: [(Self, &'static str); 4] = [
        (Self::Waiting, "waiting"),
        (Self::Proposed, "proposed"),
        (Self::Final, "final"),
        (Self::Claimed, "claimed"),
    ];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(stage, _)| *stage == self).map_or("", |(_, name)| name)
    }
}

impl<'a> Records<'a> {
    pub(crate) fn new(snapshot: &'a dyn Snapshot) -> Result<Self, HttpError> {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok(Self {
            snapshot,
            state: opchild::state(snapshot).map_err(HttpError::internal)?,
            l1: bridge_output::l1_state(snapshot).map_err(HttpError::internal)?,
            now: i64::try_from(since.as_nanos()).unwrap_or(i64::MAX),
        })
    }

    /// The number of the bridge; 0 if nothing says it.
    pub(crate) fn bridge(&self) -> u64 {
        match &self.l1 {
            Some(l1) => l1.bridge,
            None => self.state.bridge,
        }
    }

    /// When claims against an output are accepted.
    fn final_at(&self, output: &Output) -> Option<i64> {
        let proposal = output.live()?;
        Some(claimable_at(proposal.l1_time, self.l1.as_ref()?.finalization_seconds))
    }

    /// The last output against which claims are accepted; 0 if there is none.
    pub(crate) fn last_final(&self) -> Result<u64, HttpError> {
        let first = bridge_output::first(self.snapshot).map_err(HttpError::internal)?.unwrap_or(1);
        let (mut low, mut high) = (first, self.l1.as_ref().map_or(0, |l1| l1.last_output) + 1);
        while low < high {
            let middle = low.midpoint(high);
            let output = bridge_output::output(self.snapshot, middle).map_err(HttpError::internal)?;
            let is_final = output.and_then(|output| self.final_at(&output)).is_some_and(|at| at <= self.now);
            if is_final { low = middle + 1 } else { high = middle }
        }
        Ok(if low == first { 0 } else { low - 1 })
    }

    /// The output that covers a block, with its number.
    pub(crate) fn covering(&self, height: u64) -> Result<Option<(u64, Output)>, HttpError> {
        let Some(l1) = &self.l1 else { return Ok(None) };
        bridge_output::covering(self.snapshot, l1, height).map_err(HttpError::internal)
    }

    /// The record of a withdrawal as an executor has it.
    pub(crate) fn of_executor(&self, sequence: u64) -> Result<Option<BridgeWithdrawal>, HttpError> {
        Ok(self.read(sequence)?.map(|(record, _)| record))
    }

    /// The record of a withdrawal, with its stage.
    pub(crate) fn withdrawal(&self, sequence: u64) -> Result<BridgeWithdrawal, HttpError> {
        let (mut record, output) =
            self.read(sequence)?.ok_or_else(|| missing(Withdrawals::SPEC, sequence))?;
        self.stage(sequence, output.as_ref())?.name().clone_into(&mut record.state);
        record.claimed_tx =
            self.claim(sequence)?.map(|claim| hex::encode_upper(claim.tx_hash)).unwrap_or_default();
        if let Some(output) = &output {
            record.claimable_at = self.final_at(output).map(time).unwrap_or_default();
            record.output_l1_height = output.live().map_or(0, |proposal| proposal.l1_height);
        }
        Ok(record)
    }

    /// How far a withdrawal is, which `output` covers.
    pub(crate) fn stage(&self, sequence: u64, output: Option<&Output>) -> Result<Stage, HttpError> {
        if self.claim(sequence)?.is_some() {
            return Ok(Stage::Claimed);
        }
        Ok(match output.and_then(|output| self.final_at(output)) {
            None => Stage::Waiting,
            Some(at) if at > self.now => Stage::Proposed,
            Some(_) => Stage::Final,
        })
    }

    /// The claim of a withdrawal, if it is known.
    fn claim(&self, sequence: u64) -> Result<Option<L1Claim>, HttpError> {
        bridge_output::claim(self.snapshot, sequence).map_err(HttpError::internal)
    }

    fn read(&self, sequence: u64) -> Result<Option<(BridgeWithdrawal, Option<Output>)>, HttpError> {
        let internal = HttpError::internal;
        let Some(row) = opchild::withdrawal(self.snapshot, sequence).map_err(internal)? else {
            return Ok(None);
        };
        let covering = self.covering(row.height())?;
        let proof = match &covering {
            Some((number, output)) => {
                bridge_output::proof(self.snapshot, (*number, output), sequence).map_err(internal)?
            }
            None => None,
        };
        let proved = covering.as_ref().filter(|_| proof.is_some());
        let source = row.source.unwrap_or_default();
        let record = BridgeWithdrawal {
            sequence,
            to: row.to,
            from: row.from,
            amount: Some(Coin { denom: row.base_denom, amount: row.amount }),
            output_index: proved.map_or(0, |(number, _)| *number),
            bridge_id: self.bridge(),
            withdrawal_proofs: proof.iter().flatten().map(|node| STANDARD.encode(node)).collect(),
            version: STANDARD.encode([tree::VERSION]),
            storage_root: proved.map(|(_, output)| STANDARD.encode(&output.storage_root)),
            last_block_hash: proved.map(|(_, output)| STANDARD.encode(&output.last_block_hash)),
            tx_time: time(source.time),
            tx_height: source.height,
            tx_hash: executor_hash(&source),
            state: String::new(),
            claimable_at: String::new(),
            output_l1_height: 0,
            claimed_tx: String::new(),
        };
        Ok(Some((record, covering.map(|(_, output)| output))))
    }

    /// The record of an output.
    pub(crate) fn output(&self, number: u64, output: &Output) -> BridgeOutput {
        let proposal = output.proposal.clone().unwrap_or_default();
        let final_at = self.final_at(output);
        BridgeOutput {
            output_index: number,
            l2_block_number: proposal.l2_block,
            output_root: STANDARD.encode(&proposal.root),
            l1_height: proposal.l1_height,
            l1_time: time(proposal.l1_time),
            final_at: final_at.map(time),
            r#final: final_at.is_some_and(|at| at <= self.now),
            withdrawals: match output.comparison() {
                Comparison::Pending | Comparison::Impossible => None,
                Comparison::Equal | Comparison::Differs | Comparison::Unknown => Some(output.withdrawals),
            },
            verified: match output.comparison() {
                Comparison::Equal => Some(true),
                Comparison::Differs => Some(false),
                Comparison::Pending | Comparison::Unknown | Comparison::Impossible => None,
            },
            deleted: output.deleted,
            former_roots: output.former.iter().map(|former| STANDARD.encode(&former.root)).collect(),
            proposer: String::new(),
            l1_txhash: String::new(),
        }
    }
}

/// The record of a deposit that the rollup has finalized.
pub(crate) fn finalized(sequence: u64, row: Finalized) -> BridgeDeposit {
    let result = match row.arrival() {
        Arrival::Arrived => "arrived",
        Arrival::HookFailed => "hook_failed",
        Arrival::Refunded => "refunded",
    };
    let source = row.source.unwrap_or_default();
    BridgeDeposit {
        l1_sequence: sequence,
        from: row.from,
        to: row.to,
        l1_denom: row.base_denom,
        l2_denom: row.denom,
        amount: row.amount,
        result: result.to_owned(),
        reason: row.reason,
        l1_height: row.l1_height,
        height: source.height,
        timestamp: time(source.time),
        txhash: hash(&source),
    }
}

/// The record of a deposit on the layer one.
pub(crate) fn initiated(sequence: u64, row: L1Deposit) -> BridgeDeposit {
    let source = row.source.unwrap_or_default();
    BridgeDeposit {
        l1_sequence: sequence,
        from: row.from,
        to: row.to,
        l1_denom: row.l1_denom,
        l2_denom: row.l2_denom,
        amount: row.amount,
        result: "initiated".to_owned(),
        reason: String::new(),
        l1_height: source.height,
        height: source.height,
        timestamp: time(source.time),
        txhash: hash(&source),
    }
}

/// The record of an output on the layer one. Its period is in no event.
pub(crate) fn proposed(number: u64, row: &ProposedOutput) -> BridgeOutput {
    let (last, former) = match row.proposals.split_last() {
        Some((last, former)) => (last.clone(), former),
        None => (OneProposal::default(), &[][..]),
    };
    let source = last.source.unwrap_or_default();
    BridgeOutput {
        output_index: number,
        l2_block_number: last.l2_block,
        output_root: STANDARD.encode(&last.root),
        l1_height: source.height,
        l1_time: time(source.time),
        final_at: None,
        r#final: false,
        withdrawals: None,
        verified: None,
        deleted: last.deleted.is_some(),
        former_roots: former.iter().map(|proposal| STANDARD.encode(&proposal.root)).collect(),
        proposer: last.proposer,
        l1_txhash: hash(&source),
    }
}

/// The record of a claim.
pub(crate) fn claim(bridge: u64, row: PaidWithdrawal) -> BridgeClaim {
    let source = row.source.unwrap_or_default();
    BridgeClaim {
        bridge_id: bridge,
        l2_sequence: row.sequence,
        output_index: row.output,
        from: row.from,
        to: row.to,
        l1_denom: row.l1_denom,
        l2_denom: row.l2_denom,
        amount: row.amount,
        height: source.height,
        timestamp: time(source.time),
        txhash: hash(&source),
    }
}

/// The value of a row that a list names.
pub(crate) fn stored<T: store::Table<Value = Message<V>>, V>(
    snapshot: &dyn Snapshot,
    key: &T::Key,
    number: u64,
) -> Result<V, HttpError> {
    let row = store::table::read::<T>(snapshot, key).map_err(HttpError::internal)?;
    row.map(|Message(value)| value).ok_or_else(|| missing(T::SPEC, number))
}

fn time(nanos: i64) -> String {
    Timestamp::from_unix_nanos(nanos).nanos()
}

fn hash(source: &Source) -> String {
    hex::encode_upper(&source.tx_hash)
}

/// The hash that the executor gives: without a transaction, the SHA-256 of no bytes.
fn executor_hash(source: &Source) -> String {
    const OF_NOTHING: &str = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855";
    if source.tx_hash.is_empty() { OF_NOTHING.to_owned() } else { hash(source) }
}
