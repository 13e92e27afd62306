//! Address parsing and the addresses that a plan needs.
//!
//! A client lists one address for each chain of [`Plan::required_chains`], or for each chain of [`Plan::chains`].
//! Every listed address is validated, even if no message uses it, to report a typing error
//! early.

use alloy::primitives::Address;
use chain::Account;
use planner::{Hop, Plan};
use registry::{ChainKind, ChainRef, Registry};

use crate::error::{BuildError, truncated};

/// An account with its spelling on one chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Party {
    /// Its bytes: 20 on EVM chains.
    pub account: Account,
    /// In the chain's format: bech32, or `0x…` as given.
    pub text: String,
}

/// Reads an address of `chain`: bech32 of 20 or 32 bytes with the chain's prefix; on chains of Initia also `0x` and 40
/// or 64 digits; on EVM chains `0x` and 40 digits. Mixed case must match EIP-55. `field` is the name in the request.
pub fn read(registry: &Registry, chain: ChainRef, field: &str, text: &str) -> Result<Party, BuildError> {
    let at = &registry[chain];
    let refused = |must: String| BuildError::Address {
        field: field.to_owned(),
        address: truncated(text),
        chain: at.id.clone(),
        must,
    };
    if at.kind == ChainKind::Evm {
        let account = hex_account(text, &[40]).map_err(refused)?;
        if account == Account::ZERO {
            return Err(refused("the zero address is nobody's".to_owned()));
        }
        return Ok(Party { account, text: text.to_owned() });
    }
    let prefix = &at.bech32_prefix;
    let account = if at.initia && text.starts_with("0x") {
        hex_account(text, &[40, 64]).map_err(refused)?
    } else {
        Account::from_bech32(text, prefix).ok_or_else(|| {
            let also = if at.initia { ", or 0x and 40 or 64 hex digits" } else { "" };
            refused(format!(
                "it must be bech32 with prefix `{prefix}`, 20 or 32 bytes and a right checksum{also}"
            ))
        })?
    };
    Ok(Party { account, text: account.to_bech32(prefix) })
}

fn hex_account(text: &str, lengths: &[usize]) -> Result<Account, String> {
    let must = || {
        let lengths: Vec<String> = lengths.iter().map(ToString::to_string).collect();
        format!("it must be 0x and {} hex digits", lengths.join(" or "))
    };
    let digits = text.strip_prefix("0x").ok_or_else(must)?;
    if !lengths.contains(&digits.len()) {
        return Err(must());
    }
    let bytes = alloy::hex::decode(digits).map_err(|_| must())?;
    let mixed = digits.bytes().any(|byte| byte.is_ascii_uppercase())
        && digits.bytes().any(|byte| byte.is_ascii_lowercase());
    if mixed && bytes.len() == 20 && Address::from_slice(&bytes).to_checksum(None) != text {
        return Err(
            "its capitals are not those of EIP-55: correct it, or write it in small letters".to_owned()
        );
    }
    Account::from_bytes(&bytes).ok_or_else(must)
}

/// A contract's address from the registry.
pub(crate) fn contract(what: &'static str, text: &str) -> Result<Address, BuildError> {
    let parsed = text.strip_prefix("0x").and_then(|digits| digits.parse().ok());
    parsed.ok_or_else(|| BuildError::Registry { what, value: text.to_owned(), must: "0x and 40 hex digits" })
}

/// An account of 20 bytes, which an EVM can represent.
pub(crate) fn evm_address(
    registry: &Registry,
    chain: ChainRef,
    party: &Party,
) -> Result<Address, BuildError> {
    let bytes: Result<[u8; 20], _> = party.account.as_bytes().try_into();
    bytes.map(Address::from).map_err(|_| BuildError::LongAccount {
        address: party.text.clone(),
        chain: registry[chain].id.clone(),
    })
}

/// Signers of a plan's transactions, and the recipient.
pub(crate) struct Signers {
    /// Signer of each transaction.
    of_txs: Vec<Party>,
    /// Recipient of the last hop.
    recipient: Party,
    /// The user's own address on each chain for which one was given.
    own: Vec<(ChainRef, Party)>,
}

impl Signers {
    pub(crate) fn read(registry: &Registry, plan: &Plan, list: &[String]) -> Result<Self, BuildError> {
        let layouts = [Layout::required(registry, plan), Layout::visited(registry, plan)];
        let mut why = None;
        for layout in layouts.iter().filter(|layout| layout.chains.len() == list.len()) {
            match layout.signers_of(registry, list) {
                Ok(signers_of) => return Ok(signers_of),
                // An error of the documented layout is more helpful than one of the alternative.
                Err(refused) => why = why.or(Some(refused)),
            }
        }
        let names = |layout: &Layout| {
            let ids: Vec<&str> = layout.chains.iter().map(|chain| registry[*chain].id.as_str()).collect();
            ids.join(", ")
        };
        Err(why.unwrap_or_else(|| BuildError::AddressCount {
            given: list.len(),
            wanted: layouts[0].chains.len(),
            required: names(&layouts[0]),
            visited: names(&layouts[1]),
        }))
    }

    /// Signer of a transaction; `None` if the plan has fewer transactions.
    pub(crate) fn signer(&self, tx: usize) -> Option<&Party> {
        self.of_txs.get(tx)
    }

    /// The user's own address on a chain, or the recipient's if no other was given for it.
    pub(crate) fn own(&self, chain: ChainRef) -> Option<&Party> {
        self.own.iter().find(|(of, _)| *of == chain).map(|(_, party)| party)
    }

    /// Account that holds the tokens after the transaction: the next signer, or the recipient.
    pub(crate) fn end(&self, tx: usize) -> &Party {
        self.of_txs.get(tx + 1).unwrap_or(&self.recipient)
    }
}

/// The first hop of each transaction, with its position.
fn first_hops(plan: &Plan) -> impl Iterator<Item = (usize, &Hop)> {
    let begins = |index: usize| index == 0 || plan.hops[index - 1].tx != plan.hops[index].tx;
    plan.hops.iter().enumerate().filter(move |(index, _)| begins(*index))
}

/// Positions in a list of addresses.
struct Layout {
    chains: Vec<ChainRef>,
    /// Position of each transaction's signer.
    signers: Vec<usize>,
}

impl Layout {
    /// The layout of `required_chain_addresses`.
    fn required(registry: &Registry, plan: &Plan) -> Self {
        let chains = plan.required_chains(registry);
        // The last address is the recipient, which signs nothing.
        let own = &chains[..chains.len().saturating_sub(1)];
        let at = |hop: &Hop| own.iter().position(|chain| *chain == registry[hop.from].chain);
        let signers = first_hops(plan).filter_map(|(_, hop)| at(hop)).collect();
        Self { chains, signers }
    }

    /// The layout of `chain_ids`.
    fn visited(registry: &Registry, plan: &Plan) -> Self {
        let passed =
            |hops: &[Hop]| Plan { hops: hops.to_vec(), swap: None }.chains(registry).len().saturating_sub(1);
        let signers = first_hops(plan).map(|(index, _)| passed(&plan.hops[..index])).collect();
        Self { chains: plan.chains(registry), signers }
    }

    fn signers_of(&self, registry: &Registry, list: &[String]) -> Result<Signers, BuildError> {
        let read = |(index, (chain, text)): (usize, (&ChainRef, &String))| {
            read(registry, *chain, &format!("address_list[{index}]"), text)
        };
        let all: Vec<Party> = self.chains.iter().zip(list).enumerate().map(read).collect::<Result<_, _>>()?;
        let signers = self.signers.iter().filter_map(|position| all.get(*position).cloned()).collect();
        let recipient = all.last().cloned().ok_or_else(|| BuildError::Plan("it has no hops".to_owned()))?;
        let own = self.chains.iter().copied().zip(all).collect();
        Ok(Signers { of_txs: signers, recipient, own })
    }
}
