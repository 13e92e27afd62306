//! Pairs of minievm's ERC20Wrapper: the local and the remote token.
//!
//! The contract (minievm `x/evm/contracts/erc20_wrapper/ERC20Wrapper.sol`) makes one token of each pair: `toLocal`
//! makes a local token with 18 decimals for a remote one, `toRemote` makes a remote token with 6 decimals for a local
//! one. A registry names the made token and its origin, so the decimals determine the direction.
//!
//! # Invariants
//!
//! A token that the contract cannot have made forms no pair, because a call with a wrong token mints a new token.

use crate::model::{AssetRef, Origin};
use crate::snapshot::Registry;

/// `LOCAL_DECIMALS` of the contract.
const LOCAL_DECIMALS: u8 = 18;
/// `REMOTE_DECIMALS` of the contract.
const REMOTE_DECIMALS: u8 = 6;

/// Two tokens of one chain that its wrapper converts into each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair<'a> {
    /// The wrapper, `0x…`.
    pub contract: &'a str,
    /// Input of `toLocal`, output of `toRemote`.
    pub remote: AssetRef,
    /// Input of `toRemote`, output of `toLocal`.
    pub local: AssetRef,
}

impl Registry {
    /// The pair of a token that the wrapper made; `None` if the wrapper did not make it.
    pub fn wrapper_pair(&self, made: AssetRef) -> Option<Pair<'_>> {
        let Origin::Wrapped { contract, parent } = &self[made].origin else { return None };
        let (here, there) = (self[made].decimals, self[*parent].decimals);
        match (here, there) {
            (LOCAL_DECIMALS, ..LOCAL_DECIMALS) => Some(Pair { contract, remote: *parent, local: made }),
            (REMOTE_DECIMALS, 7..) => Some(Pair { contract, remote: made, local: *parent }),
            _ => None,
        }
    }

    /// The pair that two tokens form, in any order.
    pub fn wrapper_pair_of(&self, one: AssetRef, other: AssetRef) -> Option<Pair<'_>> {
        let made = |made: AssetRef, from: AssetRef| {
            (self[made].origin.parent() == Some(from)).then(|| self.wrapper_pair(made))?
        };
        made(one, other).or_else(|| made(other, one))
    }

    /// All pairs.
    pub fn wrapper_pairs(&self) -> impl Iterator<Item = (AssetRef, Pair<'_>)> {
        self.assets().filter_map(|(made, _)| Some((made, self.wrapper_pair(made)?)))
    }
}

impl Pair<'_> {
    /// Whether one wrapper cannot have both pairs: a local token belongs to one remote token, and a remote token, which
    /// has one number of decimals here, has one local token.
    pub(crate) fn excludes(&self, registry: &Registry, other: &Self) -> bool {
        let at = |pair: &Self| (registry[pair.local].chain, pair.contract.to_ascii_lowercase());
        self != other && (self.local == other.local || self.remote == other.remote) && at(self) == at(other)
    }
}
