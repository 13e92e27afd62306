//! ERC20Wrapper pairs: contract queries, and the pairs that messages may name.
//!
//! A call with a wrong token or wrong decimals mints a new token and locks the sent amount. Therefore no message names
//! a pair that has an error in the registry or that the chain contradicts, regardless of the origin of the plan.

use alloy::primitives::Address;
use alloy::sol_types::SolCall as _;
use registry::facts::{PairState, WrapperFacts};
use registry::{AssetRef, Facts, Pair, Part, Registry};

use crate::calls::WrapperViews;
use crate::error::BuildError;

/// `remoteTokens` and `remoteDecimals` of a local token, in that order.
pub fn calls(local: [u8; 20]) -> (Vec<u8>, Vec<u8>) {
    let token = Address::from(local);
    let remote = WrapperViews::remoteTokensCall { localToken: token }.abi_encode();
    (remote, WrapperViews::remoteDecimalsCall { localToken: token }.abi_encode())
}

/// Decoded answers of both calls.
pub fn read(remote: &[u8], decimals: &[u8]) -> WrapperFacts {
    let token = WrapperViews::remoteTokensCall::abi_decode_returns_validate(remote);
    let decimals = WrapperViews::remoteDecimalsCall::abi_decode_returns_validate(decimals);
    match (token, decimals) {
        (Ok(token), Ok(decimals)) => WrapperFacts::Pair { remote: token.to_checksum(None), decimals },
        _ => WrapperFacts::NotAWrapper("it does not answer remoteTokens and remoteDecimals".to_owned()),
    }
}

/// The pair that two tokens form.
pub(crate) fn pair<'a>(
    registry: &'a Registry,
    facts: &Facts,
    one: AssetRef,
    other: AssetRef,
) -> Result<Pair<'a>, BuildError> {
    let name = |asset: AssetRef| registry[asset].denom.clone();
    let pair = registry.wrapper_pair_of(one, other).ok_or_else(|| {
        BuildError::Plan(format!("`{}` and `{}` are no pair of a wrapper", name(one), name(other)))
    })?;
    let error = [one, other].into_iter().find_map(|asset| registry.error(Part::Asset(asset)));
    let why = match (error, facts.pair(registry, &pair)) {
        (Some(error), _) => error.to_owned(),
        (None, PairState::Contradicted(why)) => why,
        (None, PairState::Unknown | PairState::Confirmed) => return Ok(pair),
    };
    Err(BuildError::Doubt { denom: name(pair.local), why })
}
