//! The virtual machine of a chain: it determines the kinds of records and the form of addresses in events.
//!
//! The names are those of the configuration and of the wire, and must not change.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The virtual machine that a chain runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Vm {
    /// `MiniEVM`: Ethereum receipts, traces, ERC-721, addresses in hex and in bech32.
    Evm,
    /// `MiniMove`, and Initia's layer one: Move events, addresses in short hex and in bech32.
    Move,
    /// `MiniWasm`: CosmWasm events, addresses in bech32 only.
    Wasm,
    /// A plain Cosmos chain, addresses in bech32 only.
    None,
}

impl Vm {
    /// True if a `0x…` value of an event is an address on this chain.
    pub fn writes_hex(self) -> bool {
        matches!(self, Self::Evm | Self::Move)
    }

    /// The name used in the configuration and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Evm => "evm",
            Self::Move => "move",
            Self::Wasm => "wasm",
            Self::None => "none",
        }
    }
}

impl fmt::Display for Vm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An unknown name of a virtual machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown vm {0:?}: use evm, move, wasm or none")]
pub struct UnknownVm(String);

impl FromStr for Vm {
    type Err = UnknownVm;

    fn from_str(text: &str) -> Result<Self, UnknownVm> {
        [Self::Evm, Self::Move, Self::Wasm, Self::None]
            .into_iter()
            .find(|vm| vm.name() == text)
            .ok_or_else(|| UnknownVm(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_others_are_refused() {
        for vm in [Vm::Evm, Vm::Move, Vm::Wasm, Vm::None] {
            assert_eq!(vm.to_string().parse(), Ok(vm));
        }
        assert_eq!("EVM".parse::<Vm>(), Err(UnknownVm("EVM".to_owned())));
    }
}
