//! Op hooks: calls that a deposit executes on the rollup to wrap the deposited coin.
//!
//! A deposit credits the bridged coin; users hold its wrapped form, and only the holder can wrap it. Therefore the
//! holder signs two calls in advance and the deposit carries them.

use alloy::sol_types::SolCall as _;
use chain::{Account, U256, Vm};
use registry::{AssetRef, ChainRef, Facts, Origin, Pair, Registry};

use crate::address::{self, Party, contract, evm_address};
use crate::amino::{CALL, Call, Invocation};
use crate::calls::{Erc20, WrapAll};
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
    /// The user's own address, in a format of the destination chain.
    pub source_address: &'a str,
    /// Asset received.
    pub dest: AssetRef,
    /// Recipient.
    pub dest_address: &'a str,
}

/// Messages that the user signs as a transaction of the rollup and passes to [`crate::transactions`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpHook {
    /// The rollup on which the messages are signed and executed.
    pub chain: ChainRef,
    /// In order.
    pub hook: Vec<Msg>,
}

/// The calls to sign for a deposit of `source` that arrives as `dest`.
///
/// Fails with [`BuildError::HookNotRequired`] unless `dest` is the wrapped form of a bridged coin, `source` is on
/// another chain, and packets cannot call the wrapper. Whether the planner uses the bridge is not checked here.
pub fn op_hook(request: &OpHookRequest<'_>) -> Result<OpHook, BuildError> {
    let chain = request.registry[request.dest].chain;
    if !needed(request.registry, request.facts, request.source, request.dest) {
        return Err(BuildError::HookNotRequired);
    }
    let signer = address::read(request.registry, chain, "source_address", request.source_address)?;
    let recipient = address::read(request.registry, chain, "dest_address", request.dest_address)?;
    let calls = calls(request.registry, request.facts, request.dest, signer.account, &recipient)?;
    Ok(OpHook { chain, hook: calls.iter().map(|call| Msg::new(CALL, call)).collect() })
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
    let approve = Erc20::approveCall { spender, amount: U256::MAX };
    let wrap =
        WrapAll::toLocalCall { receiver, remoteDenom: coin.denom.clone(), remoteDecimals: coin.decimals };
    Ok([call(&token(registry, facts, remote)?, &approve.abi_encode()), call(wrapper, &wrap.abi_encode())])
}

/// The ERC-20 behind an asset, in the spelling of registry or chain.
pub(crate) fn token(registry: &Registry, facts: &Facts, asset: AssetRef) -> Result<String, BuildError> {
    let text = facts.contract(registry, asset).ok_or_else(|| BuildError::NoContract {
        denom: registry[asset].denom.clone(),
        chain: registry[registry[asset].chain].id.clone(),
    })?;
    contract("token contract", text)?;
    Ok(text.to_owned())
}
