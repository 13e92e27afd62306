//! The Ethereum transaction that a Cosmos transaction wraps, and its hash.
//!
//! MiniEVM puts an Ethereum transaction into one `MsgCall` or `MsgCreate` with what does not fit there in the memo, and
//! the indexer puts it together again (`minievm:x/evm/types/txutils.go`, `ConvertCosmosTxToEthereumTx`; the rule is
//! here in our words). The hash binds every field at once. One thing is not in the transaction: the decimals of the fee
//! token, by which the value was scaled down; they are found by trying.

use alloy::primitives::{U256, keccak256};

use crate::address::Account;
use crate::eth_tx::{self, Memo};
use crate::evm_log::bytes;
use crate::hash::Hash;
use crate::rlp::{push_bytes, push_list, push_number, push_u64, push_u256};
use crate::tx::DecodedTx;
use crate::wire::{Value, bytes_field, fields};

/// The largest chain id that wallets take (`minievm:x/evm/types/chain_config.go`).
const MAX_CHAIN_ID: u64 = 4_503_599_627_370_476;
/// Decimals of ether.
const ETHER: u8 = 18;
/// Decimals that a fee token may have, by how likely they are; a token with more fits no wallet.
const DECIMALS: [u8; 7] = [18, 6, 0, 8, 9, 12, 24];

/// An Ethereum transaction in its parts.
#[derive(Debug)]
pub(crate) struct EthForm {
    /// 0, 1, 2 or 4.
    pub(crate) kind: u8,
    /// The price, or the most that is paid.
    pub(crate) fee_cap: U256,
    /// The signer.
    pub(crate) sender: [u8; 20],
    /// The receiver; none in a creation.
    pub(crate) to: Option<[u8; 20]>,
    tip_cap: U256,
    gas_limit: u64,
    nonce: u64,
    input: Vec<u8>,
    value: U256,
    /// RLP, wrapped.
    access_list: Vec<u8>,
    /// RLP, wrapped.
    authorizations: Vec<u8>,
    signature: [u8; 65],
}

/// The Ethereum chain id of a Cosmos chain.
pub(crate) fn ethereum_chain_id(chain_id: &str) -> u64 {
    let hash = keccak256(chain_id.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(first) % MAX_CHAIN_ID
}

/// The hash under which a Cosmos transaction that merely logged is shown: an empty legacy transaction whose input is
/// the Cosmos hash (`minievm:indexer/utils.go`).
pub(crate) fn stand_in_hash(cosmos: &Hash) -> Hash {
    let mut items = vec![0x80; 5];
    push_bytes(&mut items, cosmos);
    items.extend_from_slice(&[0x80; 3]);
    let mut all = Vec::with_capacity(48);
    push_list(&mut all, &items);
    keccak256(&all).0
}

impl EthForm {
    /// The transaction in `tx`; `None` if a node finds none in it.
    pub(crate) fn of(tx: &DecodedTx, prefix: &str) -> Option<Self> {
        if !eth_tx::has_shape(tx, prefix) {
            return None;
        }
        let memo = Memo::read(&tx.memo)?;
        let fee_cap = U256::from_str_radix(memo.gas_fee_cap.get(), 10).ok()?;
        // A fee is due exactly where there is a price, or the node sees manipulation.
        if tx.fee.is_empty() != fee_cap.is_zero() {
            return None;
        }
        let message = tx.messages.first()?;
        let parts = fields(&message.value)?;
        let creates = message.type_url.ends_with("MsgCreate");
        let [input, value, access, auths] = if creates { [2, 3, 4, u64::MAX] } else { [3, 4, 5, 6] };
        let to = if creates { None } else { Some(address(text_field(&parts, 2)?, prefix)?) };
        let mut signature = [0; 65];
        match tx.signatures.first()?.as_slice() {
            whole if whole.len() == 65 || whole.len() == 64 => {
                signature[..whole.len()].copy_from_slice(whole);
            }
            _ => return None,
        }
        Some(Self {
            kind: memo.kind,
            fee_cap,
            tip_cap: U256::from_str_radix(memo.gas_tip_cap.get(), 10).ok()?,
            gas_limit: memo.gas_limit,
            nonce: tx.signer_infos.first()?.sequence,
            sender: address(text_field(&parts, 1)?, prefix)?,
            to,
            input: hex::decode(text_field(&parts, input)?.strip_prefix("0x")?).ok()?,
            value: U256::from_str_radix(text_field(&parts, value).unwrap_or("0"), 10).ok()?,
            access_list: access_list(&parts, access)?,
            authorizations: authorizations(&parts, auths)?,
            signature,
        })
    }

    /// Whether this is the transaction with the hash. `decimals` are those of the fee token: what fitted is left there,
    /// to be tried first the next time.
    pub(crate) fn has_hash(&self, chain_id: u64, wanted: &Hash, decimals: &mut u8) -> bool {
        if self.value.is_zero() {
            return self.hash(chain_id, &self.value) == *wanted;
        }
        let fits = |decimals: &u8| {
            scaled(self.value, *decimals).is_some_and(|value| self.hash(chain_id, &value) == *wanted)
        };
        if fits(decimals) {
            return true;
        }
        match DECIMALS.into_iter().chain(0..=36).find(fits) {
            Some(found) => *decimals = found,
            None => return false,
        }
        true
    }

    fn hash(&self, chain_id: u64, value: &U256) -> Hash {
        let mut items = Vec::with_capacity(self.input.len() + self.access_list.len() + 256);
        if self.kind != 0 {
            push_u64(&mut items, chain_id);
        }
        push_u64(&mut items, self.nonce);
        if matches!(self.kind, 2 | 4) {
            push_u256(&mut items, &self.tip_cap);
        }
        push_u256(&mut items, &self.fee_cap);
        push_u64(&mut items, self.gas_limit);
        push_bytes(&mut items, self.to.as_ref().map_or(&[][..], <[u8; 20]>::as_slice));
        push_u256(&mut items, value);
        push_bytes(&mut items, &self.input);
        if self.kind != 0 {
            items.extend_from_slice(&self.access_list);
        }
        if self.kind == 4 {
            items.extend_from_slice(&self.authorizations);
        }
        let parity = self.signature[64];
        // EIP-155 puts the chain id of a legacy transaction into its signature.
        let v = if self.kind == 0 { u64::from(parity) + 35 + 2 * chain_id } else { u64::from(parity) };
        push_u64(&mut items, v);
        push_number(&mut items, &self.signature[..32]);
        push_number(&mut items, &self.signature[32..64]);
        let mut all = Vec::with_capacity(items.len() + 8);
        if self.kind != 0 {
            all.push(self.kind);
        }
        push_list(&mut all, &items);
        keccak256(&all).0
    }
}

/// The value in wei.
fn scaled(value: U256, decimals: u8) -> Option<U256> {
    let power = |exponent: u8| U256::from(10).checked_pow(U256::from(exponent));
    match ETHER.checked_sub(decimals) {
        Some(up) => value.checked_mul(power(up)?),
        None => value.checked_div(power(decimals - ETHER)?),
    }
}

fn text_field<'a>(parts: &[(u64, Value<'a>)], number: u64) -> Option<&'a str> {
    std::str::from_utf8(bytes_field(parts, number)?).ok()
}

/// Hex of any length that fits, or bech32, of a 20-byte address.
fn address(text: &str, prefix: &str) -> Option<[u8; 20]> {
    Account::parse(text, prefix)?.as_bytes().try_into().ok()
}

fn messages<'a>(parts: &[(u64, Value<'a>)], number: u64) -> impl Iterator<Item = &'a [u8]> {
    parts.iter().filter_map(move |part| match *part {
        (n, Value::Bytes(message)) if n == number => Some(message),
        _ => None,
    })
}

fn access_list(parts: &[(u64, Value<'_>)], number: u64) -> Option<Vec<u8>> {
    let mut tuples = Vec::new();
    for tuple in messages(parts, number) {
        let tuple = fields(tuple)?;
        let mut keys = Vec::new();
        for key in messages(&tuple, 2) {
            push_bytes(&mut keys, &bytes::<32>(std::str::from_utf8(key).ok()?)?);
        }
        let mut items = Vec::new();
        push_bytes(&mut items, &bytes::<20>(text_field(&tuple, 1)?)?);
        push_list(&mut items, &keys);
        push_list(&mut tuples, &items);
    }
    let mut list = Vec::new();
    push_list(&mut list, &tuples);
    Some(list)
}

fn authorizations(parts: &[(u64, Value<'_>)], number: u64) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    for authorization in messages(parts, number) {
        let authorization = fields(authorization)?;
        let nonce = authorization.iter().rev().find_map(|part| match *part {
            (3, Value::Varint(nonce)) => Some(nonce),
            _ => None,
        });
        let signature: &[u8; 65] = bytes_field(&authorization, 4)?.try_into().ok()?;
        let mut items = Vec::new();
        push_u256(&mut items, &U256::from_str_radix(text_field(&authorization, 1)?, 10).ok()?);
        push_bytes(&mut items, &bytes::<20>(text_field(&authorization, 2)?)?);
        push_u64(&mut items, nonce.unwrap_or(0));
        push_u64(&mut items, u64::from(signature[64]));
        push_number(&mut items, &signature[..32]);
        push_number(&mut items, &signature[32..64]);
        push_list(&mut all, &items);
    }
    let mut list = Vec::new();
    push_list(&mut list, &all);
    Some(list)
}
