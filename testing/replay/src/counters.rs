//! Counters of a replay node: calls by kind, and requests without a recorded answer.
//!
//! Counting is an atomic add. Only the texts of the last 100 requests without an answer are kept.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Number of texts kept of requests without a recorded answer.
const KEPT: usize = 100;

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
    /// Any other REST question.
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
    /// Any question to the bridge's executor.
    Executor = "executor",
    /// Any other JSON-RPC method.
    EthOther = "json-rpc other",
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The questions that a recording had no answer to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Missing {
    /// How many there were.
    pub count: u64,
    /// The texts of the last of them, at most 100.
    pub questions: Vec<String>,
}

/// The counters of a replay node.
#[derive(Debug)]
pub struct Counters {
    asked: Vec<AtomicU64>,
    missing: AtomicU64,
    lagged: AtomicU64,
    questions: Mutex<VecDeque<String>>,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            asked: Call::ALL.iter().map(|_| AtomicU64::new(0)).collect(),
            missing: AtomicU64::new(0),
            lagged: AtomicU64::new(0),
            questions: Mutex::default(),
        }
    }
}

impl Counters {
    /// How often a kind of call was made; every call of a batch counts.
    pub fn asked(&self, call: Call) -> u64 {
        self.asked[call as usize].load(Relaxed)
    }

    /// The questions that had no answer.
    pub fn missing(&self) -> Missing {
        let questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        Missing { count: self.missing.load(Relaxed), questions: questions.iter().cloned().collect() }
    }

    /// How many answers about state were those of the height before.
    pub fn lagged(&self) -> u64 {
        self.lagged.load(Relaxed)
    }

    pub(crate) fn lag(&self) {
        self.lagged.fetch_add(1, Relaxed);
    }

    pub(crate) fn count(&self, call: Call) {
        self.asked[call as usize].fetch_add(1, Relaxed);
    }

    /// Notes a question without an answer, and gives the message to answer it with.
    pub(crate) fn miss(&self, question: &str) -> String {
        tracing::warn!(question, "not recorded");
        self.missing.fetch_add(1, Relaxed);
        let mut questions = self.questions.lock().unwrap_or_else(PoisonError::into_inner);
        if questions.len() == KEPT {
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
        let counts: Vec<_> = Call::ALL.iter().map(|call| counters.asked(*call)).collect();
        assert_eq!(counts, (1..=Call::ALL.len() as u64).collect::<Vec<_>>());
    }

    #[test]
    fn the_texts_of_missing_questions_are_bounded_and_their_number_is_not() {
        let counters = Counters::default();
        (0..250).for_each(|i| assert_eq!(counters.miss(&format!("q{i}")), format!("not recorded: q{i}")));
        let missing = counters.missing();
        assert_eq!((missing.count, missing.questions.len()), (250, KEPT));
        assert_eq!(missing.questions.last().map(String::as_str), Some("q249"));
    }
}
