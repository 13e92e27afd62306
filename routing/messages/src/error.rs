//! Errors of the message builder.

use chain::U256;

/// Error of the message builder. The messages are for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Not one address for each chain.
    #[error(
        "address_list has {given} entries; this route takes {wanted}: one for each of [{required}], or of [{visited}]"
    )]
    AddressCount {
        /// How many there are.
        given: usize,
        /// How many `required_chain_addresses` has.
        wanted: usize,
        /// The chains of `required_chain_addresses`.
        required: String,
        /// The chains of `chain_ids`.
        visited: String,
    },
    /// No address of its chain.
    #[error("{field} `{address}` is no address of chain `{chain}`: {must}")]
    Address {
        /// Which one, for example `address_list[1]`.
        field: String,
        /// As given; cut if it is long.
        address: String,
        /// The chain's id.
        chain: String,
        /// Expected form.
        must: String,
    },
    /// A wrapped token is an EVM's, whose accounts have 20 bytes.
    #[error(
        "`{address}` has 32 bytes: on chain `{chain}` only an account of 20 bytes can get a wrapped token"
    )]
    LongAccount {
        /// The account.
        address: String,
        /// The chain's id.
        chain: String,
    },
    /// No percentage.
    #[error(
        "slippage_tolerance_percent `{0}` must be a decimal from 0 to 100 with at most 18 digits after the point"
    )]
    Slippage(String),
    /// No time.
    #[error(
        "timeout_seconds {0} must be at least 1, and the time it ends must fit into 64 bits of nanoseconds; leave it out for 300"
    )]
    Timeout(u64),
    /// The plan has a deposit that only a hook can complete.
    #[error("signed_op_hook is required for this route")]
    HookRequired,
    /// There is no deposit, or nothing to do after it.
    #[error("op hook is not required for this route")]
    HookNotRequired,
    /// A hook that does not do what the plan needs.
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
    /// A wrapper's pair that the registry has an error in, or that the chain contradicts.
    #[error("no message may convert `{denom}`: {why}")]
    Doubt {
        /// The local token of the pair.
        denom: String,
        /// The error of the registry or of the chain.
        why: String,
    },
    /// More bytes than the chains take.
    #[error("the {what} takes {size} bytes, more than the {limit} that chains take: choose a shorter route")]
    TooLarge {
        /// Subject.
        what: &'static str,
        /// Bytes it has.
        size: usize,
        /// Bytes it may have.
        limit: usize,
    },
    /// An amount that a message cannot carry.
    #[error("amount {amount} of `{denom}` cannot be sent: {must}")]
    Amount {
        /// Base units.
        amount: U256,
        /// Of what.
        denom: String,
        /// Expected form.
        must: String,
    },
    /// The plan's steps do not fit together, or not into one transaction.
    #[error("this route cannot be signed: {0}")]
    Plan(String),
    /// The registry names something that is no address or no hex.
    #[error("the registry's {what} `{value}` is not {must}: correct it there")]
    Registry {
        /// Which value.
        what: &'static str,
        /// As it stands there.
        value: String,
        /// Expected form.
        must: &'static str,
    },
}

/// Truncates client input for an error message.
pub(crate) fn truncated(text: &str) -> String {
    const MOST: usize = 80;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
