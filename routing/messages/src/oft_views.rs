//! Views of an OFT contract that describe it (LayerZero V2, `IOFT.sol`, `OAppCore.sol`), for the comparison of a registry
//! with the chains.

use alloy::sol_types::SolCall as _;

use crate::calls::OftViews;

/// A view, each of which returns one word of 32 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OftView {
    /// Decimals of amounts in messages.
    SharedDecimals,
    /// The token that is locked or burnt; the contract itself where both are one, zero for the chain's coin.
    Token,
    /// Whether the contract needs an allowance: 1 or 0.
    ApprovalRequired,
    /// The contract on the chain with this endpoint id; zero if there is none.
    Peer(u32),
    /// Decimals of an ERC-20.
    Decimals,
}

impl OftView {
    /// Calldata.
    pub fn calldata(self) -> Vec<u8> {
        match self {
            Self::SharedDecimals => OftViews::sharedDecimalsCall {}.abi_encode(),
            Self::Token => OftViews::tokenCall {}.abi_encode(),
            Self::ApprovalRequired => OftViews::approvalRequiredCall {}.abi_encode(),
            Self::Peer(eid) => OftViews::peersCall { eid }.abi_encode(),
            Self::Decimals => OftViews::decimalsCall {}.abi_encode(),
        }
    }
}
