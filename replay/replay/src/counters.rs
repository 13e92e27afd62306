//! Counters of a replay node: calls by kind, and requests without a recorded reply.
//!
//! Counting is an atomic add. Only the texts of the last 100 requests without a reply are kept.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Number of texts kept of requests without a recorded reply.
const MAX_KEPT: usize = 100;

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// The kinds of call that a replay node counts.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Call { $($(#[$doc])* $name,)* }

        impl Call {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

calls! {
    /// `CometBFT` `/status`.
    Status = "comet status",
    /// `CometBFT` `/block`.
    Block = "comet block",
    /// `CometBFT` `/block_results`.
    BlockResults = "comet block_results",
    /// `CometBFT` `/abci_query`.
    AbciQuery = "comet abci_query",
    /// `CometBFT` `/tx`.
    CometTx = "comet tx",
    /// `CometBFT` `/broadcast_tx_sync`.
    BroadcastTx = "comet broadcast_tx_sync",
    /// `CometBFT` `/tx_search`.
    TxSearch = "comet tx_search",
    /// Any other `CometBFT` method.
    CometOther = "comet other",
    /// REST `blocks/latest` and `blocks/{height}`.
    RestBlock = "rest block",
    /// REST `txs/block/{height}`.
    BlockTxs = "rest block txs",
    /// REST `txs/{hash}`.
    RestTx = "rest tx",
    /// REST `txs?query=`.
    RestTxs = "rest txs",
    /// REST `tx/v1beta1/decode`.
    Decode = "rest decode",
    /// Any other REST request.
    RestState = "rest state",
    /// `eth_blockNumber`.
    EthBlockNumber = "eth_blockNumber",
    /// `eth_getBlockReceipts`.
    EthBlockReceipts = "eth_getBlockReceipts",
    /// `eth_getBlockByNumber`.
    EthBlock = "eth_getBlockByNumber",
    /// `eth_getTransactionReceipt`.
    EthReceipt = "eth_getTransactionReceipt",
    /// `debug_traceBlockByNumber`.
    TraceBlock = "debug_traceBlockByNumber",
    /// `debug_traceTransaction`.
    TraceTransaction = "debug_traceTransaction",
    /// `eth_call`.
    EthCall = "eth_call",
    /// `eth_getLogs`.
    EthLogs = "eth_getLogs",
    /// Any request to the bridge's executor.
    Executor = "executor",
    /// Any other JSON-RPC method.
    EthOther = "json-rpc other",
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Requests without a recorded reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// Their number.
    pub count: u64,
    /// The texts of the last 100.
    pub questions: Vec<String>,
}

/// The counters of a replay node.
#[derive(Debug)]
pub struct Counters {
    calls: Vec<AtomicU64>,
    missing: AtomicU64,
    lagged: AtomicU64,
    questions: Mutex<VecDeque<String>>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            calls: Call::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            missing: AtomicU64::new(0),
            lagged: AtomicU64::new(0),
            questions: Mutex::default(),
        }
    }
}

impl Counters {
    /// Number of calls of a kind; every call of a batch counts.
    pub fn call_count(&self, call: Call) -> u64 {
        self.calls[call as usize].load(Relaxed)
    }

    /// The requests without a recorded reply.
    pub fn missing(&self) -> Missing {
        let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        Missing { count: self.missing.load(Relaxed), questions: questions.iter().cloned().collect() }
    }

    /// Number of replies from the state of the previous height.
    pub fn lagged(&self) -> u64 {
        self.lagged.load(Relaxed)
    }

    pub(crate) fn lag(&self) {
        self.lagged.fetch_add(1, Relaxed);
    }

    pub(crate) fn count(&self, call: Call) {
        self.calls[call as usize].fetch_add(1, Relaxed);
    }

    /// Records a request without a reply; returns the message of its error.
    pub(crate) fn miss(&self, question: &str) -> String {
        tracing::warn!(request = question, "no recorded answer");
        self.missing.fetch_add(1, Relaxed);
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        if questions.len() == MAX_KEPT {
            questions.pop_front();
        }
        questions.push_back(question.to_owned());
        format!("not recorded: {question}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_call_has_its_own_counter() {
        let counters = Counters::default();
        for (i, call) in Call::ALL.iter().enumerate() {
            (0..=i).for_each(|_| counters.count(*call));
        }
        let counts: Vec<_> = Call::ALL.iter().map(|call| counters.call_count(*call)).collect();
        assert_eq!(counts, (1..=Call::ALL.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn the_texts_of_unanswered_requests_are_bounded_and_their_number_is_not() {
        let counters = Counters::default();
        (0..250).for_each(|i| assert_eq!(counters.miss(&format!("q{i}")), format!("not recorded: q{i}")));
        let missing = counters.missing();
        assert_eq!((missing.count, missing.questions.len()), (250, MAX_KEPT));
        assert_eq!(missing.questions.last().map(String::as_str), Some("q249"));
    }
}
