//! Op hooks: calls that a deposit executes on the rollup to wrap the deposited coin.
//!
//! A deposit credits the bridged coin; users hold its wrapped form, and only the holder can wrap it. Therefore the
//! holder signs two calls in advance and the deposit carries them (`router-mechanics.md` §5).

use chain::{Account, U256, Vm};
use registry::{AssetRef, ChainRef, Facts, Origin, Pair, Registry};

use crate::address::{self, Party, contract, evm_address};
use crate::amino::{Amino as _, Call, Invocation};
use crate::calls;
use crate::error::BuildError;
use crate::request::Msg;
use crate::wrapper;

/// Request for an op hook. It has no amount, because the calls wrap the whole balance.
#[derive(Clone, Copy)]
pub struct OpHookRequest<'a> {
    /// Chains and assets.
    pub registry: &'a Registry,
    /// Latest chain facts.
    pub facts: &'a Facts,
    /// Asset sent.
    pub source: AssetRef,
    /// The user's own address, in a spelling of the destination chain.
    pub source_address: &'a str,
    /// Asset received.
    pub dest: AssetRef,
    /// Recipient.
    pub dest_address: &'a str,
}

/// What the user signs as a transaction of the rollup and then hands to [`crate::transactions`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpHook {
    /// The rollup: whose account signs, and where it runs.
    pub chain: ChainRef,
    /// In order.
    pub hook: Vec<Msg>,
}

/// The calls to sign for a deposit of `source` that arrives as `dest`.
///
/// [`BuildError::HookNotRequired`] unless `dest` is the wrapped form of what a bridge mints, `source` is on another
/// chain, and packets cannot do the wrapping: whether the planner then takes the bridge is for the caller to ask it.
pub fn op_hook(request: &OpHookRequest<'_>) -> Result<OpHook, BuildError> {
    let chain = request.registry[request.dest].chain;
    if !needed(request.registry, request.facts, request.source, request.dest) {
        return Err(BuildError::HookNotRequired);
    }
    let signer = address::read(request.registry, chain, "source_address", request.source_address)?;
    let recipient = address::read(request.registry, chain, "dest_address", request.dest_address)?;
    let calls = calls(request.registry, request.facts, request.dest, signer.account, &recipient)?;
    Ok(OpHook { chain, hook: calls.iter().map(Call::msg).collect() })
}

fn needed(registry: &Registry, facts: &Facts, source: AssetRef, dest: AssetRef) -> bool {
    let chain = registry[dest].chain;
    let Some(pair) = registry.wrapper_pair(dest).filter(|pair| pair.local == dest) else { return false };
    let Origin::Bridged { bridge, parent: l1 } = registry[pair.remote].origin else { return false };
    let by_packet = facts.migrated(registry, bridge, &registry[l1].denom).is_some()
        && facts.hooks_allowed(registry, chain);
    registry[source].chain != chain && registry[chain].vm == Vm::Evm && !by_packet
}

/// Calls by which `signer` wraps the whole balance of the coin behind `wrapped` for `recipient`.
pub(crate) fn calls(
    registry: &Registry,
    facts: &Facts,
    wrapped: AssetRef,
    signer: Account,
    recipient: &Party,
) -> Result<[Call; 2], BuildError> {
    let asset = &registry[wrapped];
    let Some(parent) = asset.origin.parent() else { return Err(BuildError::HookNotRequired) };
    let Pair { contract: wrapper, remote, .. } = wrapper::pair(registry, facts, wrapped, parent)?;
    let spender = contract("wrapper", wrapper)?;
    let coin = &registry[remote];
    let receiver = evm_address(registry, asset.chain, recipient)?;
    let sender = signer.to_bech32(&registry[asset.chain].bech32_prefix);
    let call =
        |contract: &str, data: &[u8]| Call { sender: sender.clone(), input: Invocation::new(contract, data) };
    Ok([
        call(&token(registry, facts, remote)?, &calls::approve(spender, U256::MAX)),
        call(wrapper, &calls::wrap_all(receiver, &coin.denom, coin.decimals)),
    ])
}

/// The ERC-20 behind an asset, as registry or chain write it: what they name, else what its denomination says.
pub(crate) fn token(registry: &Registry, facts: &Facts, asset: AssetRef) -> Result<String, BuildError> {
    let denom = &registry[asset].denom;
    let said = facts.contract(registry, asset).map(str::to_owned);
    let text = said
        .or_else(|| denom.strip_prefix("evm/").map(|digits| format!("0x{digits}")))
        .or_else(|| denom.starts_with("0x").then(|| denom.clone()))
        .ok_or_else(|| BuildError::NoContract {
            denom: denom.clone(),
            chain: registry[registry[asset].chain].id.clone(),
        })?;
    contract("token contract", &text)?;
    Ok(text)
}
