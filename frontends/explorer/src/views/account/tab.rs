//! The lists of an account, each on a tab of its page.

use maud::Markup;

use crate::explorer::Explorer;

/// A list and its JSON requests.
pub(super) type List = (Markup, Vec<String>);

/// A tab.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tab {
    Txs,
    Balances,
    Transfers,
    Evm,
    Internal,
    Nfts,
    Packets,
    Bridge,
    Contract,
}

impl Tab {
    pub(super) const ALL: [Self; 9] = [
        Self::Txs,
        Self::Balances,
        Self::Transfers,
        Self::Evm,
        Self::Internal,
        Self::Nfts,
        Self::Packets,
        Self::Bridge,
        Self::Contract,
    ];

    /// Values of the parameter.
    pub(super) const NAMES: &'static [&'static str] =
        &["txs", "balances", "transfers", "evm", "internal", "nfts", "packets", "bridge", "contract"];

    /// Its value in the query, and its label.
    pub(super) fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Txs => ("txs", "Transactions"),
            Self::Balances => ("balances", "Balances"),
            Self::Transfers => ("transfers", "Token transfers"),
            Self::Evm => ("evm", "EVM"),
            Self::Internal => ("internal", "Internal"),
            Self::Nfts => ("nfts", "NFTs"),
            Self::Packets => ("packets", "IBC"),
            Self::Bridge => ("bridge", "Bridge"),
            Self::Contract => ("contract", "Contract"),
        }
    }

    /// True if the account may have such a list.
    pub(super) fn is_of(self, explorer: &Explorer, is_contract: bool) -> bool {
        match self {
            Self::Evm | Self::Internal => explorer.is_evm(),
            Self::Contract => explorer.is_evm() && is_contract,
            _ => true,
        }
    }
}
