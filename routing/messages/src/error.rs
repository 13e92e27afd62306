//! Errors of the message builder.

use chain::U256;

/// Error of the message builder. The messages are for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Wrong number of addresses.
    #[error(
        "address_list has {given} entries; this route takes {wanted}: one for each of [{required}], or of [{visited}]"
    )]
    AddressCount {
        /// Number of addresses given.
        given: usize,
        /// Length of `required_chain_addresses`.
        wanted: usize,
        /// The chains of `required_chain_addresses`.
        required: String,
        /// The chains of `chain_ids`.
        visited: String,
    },
    /// Invalid address.
    #[error("{field} `{address}` is no address of chain `{chain}`: {must}")]
    Address {
        /// Name of the member, for example `address_list[1]`.
        field: String,
        /// As given; cut if it is long.
        address: String,
        /// The chain's id.
        chain: String,
        /// Expected form.
        must: String,
    },
    /// A wrapped token cannot be held by an account of 32 bytes.
    #[error(
        "`{address}` has 32 bytes: on chain `{chain}` only an account of 20 bytes can get a wrapped token"
    )]
    LongAccount {
        /// The account.
        address: String,
        /// The chain's id.
        chain: String,
    },
    /// Invalid percentage.
    #[error(
        "slippage_tolerance_percent `{0}` must be a decimal from 0 to 100 with at most 18 digits after the point"
    )]
    Slippage(String),
    /// A swap that could return nothing.
    #[error("slippage_tolerance_percent 100 leaves the swap without a minimum: give less than 100")]
    NoMinimum,
    /// Nowhere to return what could not be swapped.
    #[error(
        "the user's own address on chain `{chain}` is needed, for what the swap there may give back: give one address for each of chain_ids"
    )]
    NoRecoverAddress {
        /// The chain's id.
        chain: String,
    },
    /// Invalid timeout.
    #[error(
        "timeout_seconds {0} must be at least 1, and the time it ends must fit into 64 bits of nanoseconds; leave it out for 300"
    )]
    Timeout(u64),
    /// The plan has a deposit that only a hook can complete.
    #[error("signed_op_hook is required for this route")]
    HookRequired,
    /// The route has no deposit that needs an op hook.
    #[error("op hook is not required for this route")]
    HookNotRequired,
    /// An op hook that is invalid or does not match the plan.
    #[error("signed_op_hook: {0}; ask /op-hook again and sign what it answers")]
    Hook(String),
    /// The ERC-20 behind a denomination is not known.
    #[error(
        "the ERC-20 behind `{denom}` on chain `{chain}` is not known: try again when the chain's node answers, or name it in the registry"
    )]
    NoContract {
        /// The denomination.
        denom: String,
        /// The chain's id.
        chain: String,
    },
    /// A wrapper pair with an error in the registry, or contradicted by the chain.
    #[error("no message may convert `{denom}`: {why}")]
    Doubt {
        /// The local token of the pair.
        denom: String,
        /// The error of the registry or of the chain.
        why: String,
    },
    /// More bytes than chains accept.
    #[error("the {what} takes {size} bytes, more than the {limit} that chains take: choose a shorter route")]
    TooLarge {
        /// Part of the message.
        what: &'static str,
        /// Its size in bytes.
        size: usize,
        /// Maximum size in bytes.
        limit: usize,
    },
    /// An amount that a message cannot carry.
    #[error("amount {amount} of `{denom}` cannot be sent: {must}")]
    Amount {
        /// Base units.
        amount: U256,
        /// Denomination.
        denom: String,
        /// Expected form.
        must: String,
    },
    /// The steps of the plan do not form valid transactions.
    #[error("this route cannot be signed: {0}")]
    Plan(String),
    /// NFTs that cannot be sent so.
    #[error("{0}")]
    Nft(String),
    /// Invalid value in the registry.
    #[error("the registry's {what} `{value}` is not {must}: correct it there")]
    Registry {
        /// Name of the value.
        what: &'static str,
        /// As in the registry.
        value: String,
        /// Expected form.
        must: &'static str,
    },
}

/// Truncates client input for an error message.
pub(crate) fn truncated(text: &str) -> String {
    chain::truncated(text, 80)
}
