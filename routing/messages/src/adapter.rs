//! The adapter of an L1's pools: a Move module that swaps over several pools and sends the result on in one call
//! (`skipapi-move-integration`, `entry_point`). Pure.

use planner::swap::{Exact, SwapPart};
use registry::{ChainRef, Registry, intermediary};

use crate::amino::{Function, argument, bytes_of};
use crate::error::BuildError;
use crate::request::BuildRequest;

const MODULE: &str = "entry_point";
/// Fails with its transaction.
const PLAIN: &str = "swap_and_action";
/// Pays what was offered to the recover address if the swap fails; the transaction succeeds then.
const WITH_RECOVER: &str = "swap_and_action_with_recover";

/// What happens to the returned coin.
pub(crate) enum PostAction {
    /// A payment to this account of the same chain.
    Transfer(String),
    /// An ICS-20 packet over port `transfer`; the memo is empty or a JSON object.
    Ibc { channel: String, receiver: String, memo: String },
    /// A deposit into a bridge.
    Deposit { bridge: u64, to: String, data: Vec<u8> },
}

/// A swap and what follows it.
pub(crate) struct SwapCall<'a> {
    pub(crate) part: &'a SwapPart,
    pub(crate) exact: Exact,
    /// Offered; the most that is, if the amount out is exact.
    pub(crate) amount_in: u64,
    /// The least returned; wanted, if the amount out is exact.
    pub(crate) amount_out: u64,
    pub(crate) action: PostAction,
    /// Unix time in nanoseconds at which a packet of the action is returned. The swap itself never expires.
    pub(crate) timeout: u64,
    /// Account of the chain, bech32.
    pub(crate) recover: String,
}

impl SwapCall<'_> {
    /// The call of the adapter at an address, which is as the registry spells it.
    pub(crate) fn of(&self, adapter: &str) -> Function {
        let legs = || self.part.legs.iter();
        let venues: Vec<u8> = legs().map(|leg| leg.kind.adapter_number()).collect();
        let pools: Vec<Vec<&str>> = legs().map(|leg| vec![leg.pool.as_str()]).collect();
        let coins: Vec<Vec<&str>> =
            legs().map(|leg| vec![leg.denom_in.as_str(), leg.denom_out.as_str()]).collect();
        let (function, name) = match self.exact {
            Exact::In => (0u8, WITH_RECOVER),
            Exact::Out => (1, PLAIN),
        };
        let (action, action_args) = self.action.arguments();
        let args = vec![
            argument(&venues),
            argument(&function),
            argument(&self.amount_in),
            argument(&self.amount_out),
            argument(&pools),
            argument(&coins),
            argument(&action),
            argument(&self.timeout),
            argument(&self.recover),
            argument(&action_args),
        ];
        Function::new(adapter, MODULE, name, args)
    }
}

impl PostAction {
    /// Its number and its arguments, each in BCS.
    fn arguments(&self) -> (u8, Vec<Vec<u8>>) {
        match self {
            Self::Transfer(recipient) => (0, vec![bytes_of(recipient)]),
            Self::Ibc { channel, receiver, memo } => {
                (1, [channel, receiver, memo].map(bytes_of::<String>).to_vec())
            }
            Self::Deposit { bridge, to, data } => (3, vec![bytes_of(bridge), bytes_of(to), bytes_of(data)]),
        }
    }
}

/// The receiver of a packet that calls a function of a Move chain.
pub(crate) fn hook_receiver(registry: &Registry, chain: ChainRef, function: &Function) -> String {
    intermediary::move_hook_receiver(&function.path()).to_bech32(&registry[chain].bech32_prefix)
}

/// The adapter of a chain.
pub(crate) fn of_chain<'a>(request: &BuildRequest<'a>, chain: ChainRef) -> Result<&'a str, BuildError> {
    request.facts.adapter(request.registry, chain).ok_or_else(|| {
        let id = &request.registry[chain].id;
        BuildError::Plan(format!(
            "the registry names no adapter of a venue on `{id}`, which this swap needs, and the chain's hook list has none"
        ))
    })
}
