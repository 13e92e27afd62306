//! ERC-20 balance changes in the events of a block (EVM only).
//!
//! # Invariants
//!
//! Every log that changes a balance is included. So block events and failed transactions count as well (the fee of a
//! failed one is paid too), and amounts are exact 256-bit numbers. Only a transfer in the form of the standard gives an
//! amount; of any other log, the accounts are named whose balances the contract must be asked for.

use std::collections::{BTreeSet, HashMap};
use std::sync::LazyLock;

use alloy::primitives::{B256, U256};
use alloy::sol_types::SolEvent as _;
use memchr::memmem::Finder;

use crate::comet::order::in_order;
use crate::comet::{Event, ResultsResponse};
use crate::evm::Log;
use crate::evm::log::bytes;

/// A change of ERC-20 tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Erc20Event {
    /// A contract logged a transfer. The contract may not be an ERC-20: an ERC-721 that does not index its token ids
    /// logs the same shape.
    Transfer {
        /// The contract that logged it.
        contract: [u8; 20],
        /// The sender; zero for a mint.
        from: [u8; 20],
        /// The recipient; zero for a burn.
        to: [u8; 20],
        /// The amount in the token's base units.
        amount: U256,
    },
    /// A log by which the balance of an account may have changed, to an amount that only the contract can tell: wrapped
    /// ether's `Deposit` and `Withdrawal`, mints and burns of other names, transfers in another form than the standard's.
    Touched {
        /// The contract that logged it, which may be no token.
        contract: [u8; 20],
        /// The account; zero if it was sent tokens.
        account: [u8; 20],
        /// The log has the form of an ERC-721's.
        like_nft: bool,
    },
    /// A contract was called or logged something else: it may have changed balances without a log. One event for each
    /// contract, after all others.
    Active {
        /// The contract, which may be no token.
        contract: [u8; 20],
    },
    /// A contract was created: before this event all its balances are zero.
    Contract {
        /// The contract.
        contract: [u8; 20],
    },
    /// The bank has changed the balance of an account, on a chain whose bank keeps balances itself.
    Coin {
        /// The denom as the chain writes it.
        denom: String,
        /// The account.
        account: [u8; 20],
        /// How much it received or gave.
        amount: U256,
        /// True if it received it.
        into: bool,
    },
    /// What transactions of the EVM send is in events of the bank too.
    ValuesInEvents,
    /// Transactions of the EVM have no calls, so that what they sent is unknown.
    Untraced,
    /// A contract was assigned to a bank denom, to hold its balances.
    Denom {
        /// The denom as the chain writes it; its case matters.
        denom: String,
        /// The contract.
        contract: [u8; 20],
    },
}

/// The ERC-20 events of a block, in chain order.
///
/// A log of the standard has three topics of 32 bytes, two of them addresses, and 32 bytes of data. Another split of the
/// three values between topics and data is a question to the contract: it may be an ERC-721 as well.
pub fn events(results: &ResultsResponse<'_>) -> Vec<Erc20Event> {
    let logs = Logs::new();
    let (mut found, mut active) = (Vec::new(), BTreeSet::new());
    for (_, event) in in_order(results) {
        match event.kind.as_ref() {
            "evm" => {
                let texts = event.attributes.iter().filter(|attribute| attribute.key == "log");
                for text in texts {
                    logs.read(&text.value, &mut found, &mut active);
                }
            }
            "call" => active.extend(contract_of(event)),
            "contract_created" => {
                found.extend(contract_of(event).map(|contract| Erc20Event::Contract { contract }));
            }
            "erc20_created" => found.extend(denom_of(event)),
            _ => {}
        }
    }
    found.extend(active.into_iter().map(|contract| Erc20Event::Active { contract }));
    found
}

mod signatures {
    alloy::sol! {
        event Transfer(address from, address to, uint256 amount);
        // Wrapped ether.
        event Deposit(address account, uint256 amount);
        event Withdrawal(address account, uint256 amount);
        // Tokens with a name of their own for what makes or destroys them.
        event Mint(address account, uint256 amount);
        event Burn(address account, uint256 amount);
        event Minted(address account, uint256 amount);
        event Burned(address account, uint256 amount);
        event Issue(address account, uint256 amount);
        event Redeem(address account, uint256 amount);
        event DestroyedBlackFunds(address account, uint256 amount);
    }
    /// ERC-777.
    pub(super) mod erc777 {
        alloy::sol! {
            event Minted(address operator, address to, uint256 amount, bytes data, bytes operatorData);
            event Burned(address operator, address from, uint256 amount, bytes data, bytes operatorData);
            event Sent(address operator, address from, address to, uint256 amount, bytes data, bytes operatorData);
        }
    }
}

const FIRST: &[usize] = &[0];
const BOTH: &[usize] = &[0, 1];
const SECOND: &[usize] = &[1];
const LAST: &[usize] = &[1, 2];

/// Logs by which balances change, and the places of the accounts among their values.
static KINDS: LazyLock<HashMap<B256, &[usize]>> = LazyLock::new(|| {
    use signatures::{
        Burn, Burned, Deposit, DestroyedBlackFunds, Issue, Mint, Minted, Redeem, Transfer, Withdrawal, erc777,
    };
    HashMap::from([
        (Transfer::SIGNATURE_HASH, BOTH),
        (Deposit::SIGNATURE_HASH, FIRST),
        (Withdrawal::SIGNATURE_HASH, FIRST),
        (Mint::SIGNATURE_HASH, FIRST),
        (Burn::SIGNATURE_HASH, FIRST),
        (Minted::SIGNATURE_HASH, FIRST),
        (Burned::SIGNATURE_HASH, FIRST),
        (Issue::SIGNATURE_HASH, FIRST),
        (Redeem::SIGNATURE_HASH, FIRST),
        (DestroyedBlackFunds::SIGNATURE_HASH, FIRST),
        (erc777::Minted::SIGNATURE_HASH, SECOND),
        (erc777::Burned::SIGNATURE_HASH, SECOND),
        (erc777::Sent::SIGNATURE_HASH, LAST),
    ])
});

/// Reads logs. Nearly every log of a block passes through, so the first topic is searched before the text is parsed.
struct Logs {
    address: Finder<'static>,
    topics: Finder<'static>,
}

impl Logs {
    fn new() -> Self {
        Self { address: Finder::new(r#""address":"0x"#), topics: Finder::new(r#""topics":["0x"#) }
    }

    /// Adds the event of a log. A contract whose log tells no balance is active.
    fn read(&self, text: &str, found: &mut Vec<Erc20Event>, active: &mut BTreeSet<[u8; 20]>) {
        let kind = hex_after::<32>(&self.topics, text).map(B256::from);
        let Some((kind, places)) = kind.and_then(|kind| KINDS.get_key_value(&kind)) else {
            active.extend(hex_after::<20>(&self.address, text));
            return;
        };
        let Ok(log) = serde_json::from_str::<Log<'_>>(text) else { return };
        let Some(contract) = bytes(&log.address) else { return };
        let Some(values) = values(&log) else { return };
        let accounts: Option<Vec<_>> = places.iter().map(|place| account(values.get(*place)?)).collect();
        let is_transfer = *kind == signatures::Transfer::SIGNATURE_HASH;
        match (accounts.as_deref(), &values[..]) {
            (Some([from, to]), [_, _, amount])
                if is_transfer && log.topics.len() == 3 && log.data.len() == 66 =>
            {
                let amount = U256::from_be_bytes(*amount);
                found.push(Erc20Event::Transfer { contract, from: *from, to: *to, amount });
            }
            // Of a transfer, sender and recipient are told apart from the amount.
            (Some(accounts), [_, _, more @ ..])
                if !is_transfer || !more.is_empty() || log.topics.len() == 3 =>
            {
                let like_nft = is_transfer && log.topics.len() == 4;
                // The zero address can only be given tokens.
                let held =
                    |place: usize, account: [u8; 20]| account != [0; 20] || (is_transfer && place == 1);
                let accounts = accounts.iter().enumerate().filter(|(place, account)| held(*place, **account));
                found.extend(accounts.map(|(_, account)| Erc20Event::Touched {
                    contract,
                    account: *account,
                    like_nft,
                }));
            }
            _ => {}
        }
    }
}

/// Values of a log's data that are read: no account is behind them.
const VALUES: usize = 4;

/// The values of a log, of 32 bytes each: those in its topics, then those in its data. `None` if they are not hex.
fn values(log: &Log<'_>) -> Option<Vec<[u8; 32]>> {
    let mut values: Vec<[u8; 32]> =
        log.topics.iter().skip(1).map(|topic| bytes(topic)).collect::<Option<_>>()?;
    let data = log.data.strip_prefix("0x").unwrap_or(&log.data).as_bytes();
    for word in data.chunks_exact(64).take(VALUES) {
        let mut value = [0; 32];
        hex::decode_to_slice(word, &mut value).ok()?;
        values.push(value);
    }
    Some(values)
}

/// The address in a value.
fn account(value: &[u8; 32]) -> Option<[u8; 20]> {
    let (zeros, address) = value.split_first_chunk::<12>()?;
    (*zeros == [0; 12]).then(|| address.try_into().ok()).flatten()
}

/// The bytes in hex behind a text, up to a quote.
fn hex_after<const N: usize>(before: &Finder<'_>, text: &str) -> Option<[u8; N]> {
    let start = before.find(text.as_bytes())? + before.needle().len();
    let (digits, rest) = text.as_bytes().get(start..)?.split_at_checked(2 * N)?;
    let mut bytes = [0; N];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    rest.starts_with(b"\"").then_some(bytes)
}

fn denom_of(event: &Event<'_>) -> Option<Erc20Event> {
    let denom = event.value("denom").filter(|denom| !denom.is_empty())?;
    Some(Erc20Event::Denom { denom: denom.to_string(), contract: contract_of(event)? })
}

fn contract_of(event: &Event<'_>) -> Option<[u8; 20]> {
    bytes(event.value("contract")?)
}
