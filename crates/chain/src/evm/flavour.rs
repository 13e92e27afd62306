//! The software of a chain's EVM: what differs between them is asked here, once for each difference.
//!
//! | | minievm | cosmos/evm | ethermint |
//! |---|---|---|---|
//! | an Ethereum transaction is | one `MsgCall` or `MsgCreate`, its other fields in the memo | each `MsgEthereumTx`, as RLP | the same, or as a message of its fields |
//! | its result and logs | in `evm` events, some of them in the result data | in the result data | the same |
//! | receipts | of the node, compared with the results | derived from the results | derived from the results |
//! | `transactionIndex` | from 1 | from 0 | from 0 |
//! | `blockHash` | of a header of its own | of `CometBFT` | of `CometBFT` |
//! | a trace | names its transaction, within a frame of the chain | has the place of its transaction | the same |
//! | bank denoms are contracts | all | none; the EVM shows some as if they were | the same |
//! | what a transaction sends is in | logs | its calls | its calls, or events of the bank |
//!
//! The names are those of the configuration and of the wire, and must not change.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The software of an EVM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Flavour {
    /// Initia's `MiniEVM`.
    #[default]
    MiniEvm,
    /// cosmos/evm.
    CosmosEvm,
    /// Ethermint and its other descendants, such as Cronos, Kava and Evmos.
    Ethermint,
}

impl Flavour {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::MiniEvm, Self::CosmosEvm, Self::Ethermint];

    /// The name used in the configuration and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::MiniEvm => "minievm",
            Self::CosmosEvm => "cosmos-evm",
            Self::Ethermint => "ethermint",
        }
    }

    /// A message that only chains with this EVM have.
    pub fn message(self) -> &'static str {
        match self {
            Self::MiniEvm => "/minievm.evm.v1.MsgCall",
            Self::CosmosEvm => "/cosmos.evm.vm.v1.MsgEthereumTx",
            Self::Ethermint => "/ethermint.evm.v1.MsgEthereumTx",
        }
    }

    /// The EVM of a chain that has these messages; `None` if it has none that is known.
    pub fn of_messages(knows: impl Fn(&str) -> bool) -> Option<Self> {
        Self::ALL.into_iter().find(|flavour| knows(flavour.message()))
    }

    /// True if receipts follow from a block and its results alone, because an Ethereum transaction is a message.
    pub fn has_ethereum_messages(self) -> bool {
        self != Self::MiniEvm
    }

    /// True if each bank denom is a contract, which holds its balances.
    pub fn denoms_are_contracts(self) -> bool {
        self == Self::MiniEvm
    }

    /// The first height that a node traces: on a minievm, there is no state before the first block.
    pub fn first_traceable(self) -> u64 {
        match self {
            Self::MiniEvm => 2,
            Self::CosmosEvm | Self::Ethermint => 1,
        }
    }

    /// True if the first frame of a trace is the chain's own, around what the transaction does.
    pub fn wraps_traces(self) -> bool {
        self == Self::MiniEvm
    }
}

impl fmt::Display for Flavour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown name of an EVM.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown EVM {0:?}: use minievm, cosmos-evm or ethermint")]
pub struct UnknownFlavour(String);

impl FromStr for Flavour {
    type Err = UnknownFlavour;

    fn from_str(text: &str) -> Result<Self, UnknownFlavour> {
        let named = Self::ALL.into_iter().find(|flavour| flavour.name() == text);
        named.ok_or_else(|| UnknownFlavour(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_a_message_tells_the_evm() {
        for flavour in Flavour::ALL {
            assert_eq!(flavour.to_string().parse(), Ok(flavour));
            assert_eq!(Flavour::of_messages(|message| message == flavour.message()), Some(flavour));
        }
        assert_eq!("geth".parse::<Flavour>(), Err(UnknownFlavour("geth".to_owned())));
        assert_eq!(Flavour::of_messages(|_| false), None);
    }
}
