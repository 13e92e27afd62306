//! The Ethereum transaction that a Cosmos transaction wraps, and its hash.
//!
//! MiniEVM puts an Ethereum transaction into one `MsgCall` or `MsgCreate`, with its remaining fields in the memo, and
//! its indexer reassembles it (`minievm:x/evm/types/txutils.go`, `ConvertCosmosTxToEthereumTx`; reimplemented here).
//! The hash covers every field. The decimals of the fee token, by which the value was scaled down, are not in the
//! transaction; they are found by trying candidates.

use alloy::primitives::{U256, keccak256};
use alloy::rlp::{Encodable as _, Header};

use crate::address::Account;
use crate::evm::eth_tx::{self, Memo};
use crate::evm::log::bytes;
use crate::hash::Hash;
use crate::key;
use crate::tx::DecodedTx;
use crate::wire::{Value, bytes_field, fields};

/// The largest chain id that wallets accept (`minievm:x/evm/types/chain_config.go`).
const MAX_CHAIN_ID: u64 = 4_503_599_627_370_476;
/// Decimals of ether.
pub(crate) const ETHER: u8 = 18;
/// Candidate decimals of a fee token, likeliest first; wallets support no more decimals.
pub(crate) const DECIMALS: [u8; 7] = [18, 6, 0, 8, 9, 12, 24];

/// The fields of an Ethereum transaction.
#[derive(Debug)]
pub(crate) struct EthForm {
    /// 0, 1, 2 or 4.
    pub(crate) kind: u8,
    /// The gas price, or the maximum fee per gas.
    pub(crate) fee_cap: U256,
    /// The signer.
    pub(crate) sender: [u8; 20],
    /// The receiver; `None` for a creation.
    pub(crate) to: Option<[u8; 20]>,
    pub(crate) tip_cap: U256,
    pub(crate) gas_limit: u64,
    pub(crate) nonce: u64,
    pub(crate) input: Vec<u8>,
    /// In units of the fee token.
    pub(crate) value: U256,
    /// Addresses with their storage keys.
    pub(crate) access_list: Vec<Access>,
    pub(crate) authorizations: Vec<Authorization>,
    /// r, s and the parity.
    pub(crate) signature: [u8; 65],
}

/// An address with storage keys (EIP-2930).
pub(crate) type Access = ([u8; 20], Vec<[u8; 32]>);

/// An authorization of EIP-7702.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Authorization {
    pub(crate) chain_id: U256,
    pub(crate) address: [u8; 20],
    pub(crate) nonce: u64,
    /// r, s and the parity.
    pub(crate) signature: [u8; 65],
}

/// The Ethereum chain id of a Cosmos chain.
pub(crate) fn ethereum_chain_id(chain_id: &str) -> u64 {
    let hash = keccak256(chain_id.as_bytes());
    let mut first = [0; 8];
    first.copy_from_slice(&hash[..8]);
    u64::from_be_bytes(first) % MAX_CHAIN_ID
}

/// The hash of a successful Cosmos transaction that only emitted logs: that of an empty legacy transaction whose input
/// is the Cosmos hash (`minievm:indexer/utils.go`).
pub(crate) fn stand_in_hash(cosmos: &Hash) -> Hash {
    keccak256(stand_in(cosmos)).0
}

/// The encoding of that transaction.
pub(crate) fn stand_in(cosmos: &Hash) -> Vec<u8> {
    let mut items = vec![0x80; 5];
    cosmos.encode(&mut items);
    items.extend_from_slice(&[0x80; 3]);
    list(&items)
}

impl EthForm {
    /// The transaction in `tx`; `None` if a node finds none in it.
    pub(crate) fn from_tx(tx: &DecodedTx, prefix: &str) -> Option<Self> {
        if !eth_tx::has_shape(tx, prefix) {
            return None;
        }
        let memo = Memo::read(&tx.memo)?;
        let fee_cap = U256::from_str_radix(memo.gas_fee_cap.get(), 10).ok()?;
        let message = tx.messages.first()?;
        let parts = fields(&message.value)?;
        let creates = message.type_url.ends_with("MsgCreate");
        let [input, value, access, auths] = if creates { [2, 3, 4, u32::MAX] } else { [3, 4, 5, 6] };
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

    /// True if this transaction has the hash. `decimals` are those of the fee token; the matching value is stored, to
    /// be tried first the next time.
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

    /// The address that a node recovers from the signature: the sender, or an arbitrary one if the signature is wrong.
    pub(crate) fn recovered(&self, chain_id: u64, decimals: u8) -> Option<[u8; 20]> {
        let mut items = self.content(chain_id, &scaled(self.value, decimals)?, &self.authorizations);
        // EIP-155 puts the chain id of a legacy transaction in place of its signature.
        if self.kind == 0 {
            chain_id.encode(&mut items);
            items.extend_from_slice(&[0x80; 2]);
        }
        key::recover(&keccak256(self.enveloped(&items)).0, &self.signature)
    }

    fn hash(&self, chain_id: u64, value: &U256) -> Hash {
        keccak256(self.encoded(chain_id, value)).0
    }

    /// The encoding of the signed transaction (EIP-2718), whose value is in wei.
    pub(crate) fn encoded(&self, chain_id: u64, value: &U256) -> Vec<u8> {
        self.encoded_with(chain_id, value, &self.authorizations)
    }

    /// The same with other authorizations.
    pub(crate) fn encoded_with(
        &self,
        chain_id: u64,
        value: &U256,
        authorizations: &[Authorization],
    ) -> Vec<u8> {
        let mut items = self.content(chain_id, value, authorizations);
        self.v(chain_id).encode(&mut items);
        self.r().encode(&mut items);
        self.s().encode(&mut items);
        self.enveloped(&items)
    }

    /// EIP-155 puts the chain id of a legacy transaction into its signature.
    pub(crate) fn v(&self, chain_id: u64) -> u64 {
        let parity = u64::from(self.signature[64]);
        if self.kind == 0 { parity + 35 + 2 * chain_id } else { parity }
    }

    pub(crate) fn r(&self) -> U256 {
        U256::from_be_slice(&self.signature[..32])
    }

    pub(crate) fn s(&self) -> U256 {
        U256::from_be_slice(&self.signature[32..64])
    }

    /// Encoded items as a transaction of this type (EIP-2718).
    fn enveloped(&self, items: &[u8]) -> Vec<u8> {
        let mut all = list(items);
        if self.kind != 0 {
            all.insert(0, self.kind);
        }
        all
    }

    /// All fields but the signature, encoded.
    fn content(&self, chain_id: u64, value: &U256, authorizations: &[Authorization]) -> Vec<u8> {
        let mut items = Vec::with_capacity(self.input.len() + self.access_list.len() + 256);
        if self.kind != 0 {
            chain_id.encode(&mut items);
        }
        self.nonce.encode(&mut items);
        if matches!(self.kind, 2 | 4) {
            self.tip_cap.encode(&mut items);
        }
        self.fee_cap.encode(&mut items);
        self.gas_limit.encode(&mut items);
        self.to.as_ref().map_or(&[][..], <[u8; 20]>::as_slice).encode(&mut items);
        value.encode(&mut items);
        self.input.as_slice().encode(&mut items);
        if self.kind != 0 {
            items.extend(self.encoded_access_list());
        }
        if self.kind == 4 {
            items.extend(encoded_authorizations(authorizations));
        }
        items
    }

    fn encoded_access_list(&self) -> Vec<u8> {
        let mut tuples = Vec::new();
        for (address, keys) in &self.access_list {
            let (mut items, mut encoded) = (Vec::new(), Vec::new());
            for key in keys {
                key.encode(&mut encoded);
            }
            address.encode(&mut items);
            items.extend(list(&encoded));
            tuples.extend(list(&items));
        }
        list(&tuples)
    }
}

fn encoded_authorizations(authorizations: &[Authorization]) -> Vec<u8> {
    let mut all = Vec::new();
    for authorization in authorizations {
        let (mut items, signature) = (Vec::new(), &authorization.signature);
        authorization.chain_id.encode(&mut items);
        authorization.address.encode(&mut items);
        authorization.nonce.encode(&mut items);
        signature[64].encode(&mut items);
        U256::from_be_slice(&signature[..32]).encode(&mut items);
        U256::from_be_slice(&signature[32..64]).encode(&mut items);
        all.extend(list(&items));
    }
    list(&all)
}

/// The value in wei.
pub(crate) fn scaled(value: U256, decimals: u8) -> Option<U256> {
    let power = |exponent: u8| U256::from(10).checked_pow(U256::from(exponent));
    match ETHER.checked_sub(decimals) {
        Some(up) => value.checked_mul(power(up)?),
        None => value.checked_div(power(decimals - ETHER)?),
    }
}

fn text_field<'a>(parts: &[(u32, Value<'a>)], number: u32) -> Option<&'a str> {
    std::str::from_utf8(bytes_field(parts, number)?).ok()
}

/// A 20-byte address in bech32 or in hex of any length up to 20 bytes.
pub(crate) fn address(text: &str, prefix: &str) -> Option<[u8; 20]> {
    Account::parse(text, prefix)?.as_bytes().try_into().ok()
}

fn messages<'a>(parts: &[(u32, Value<'a>)], number: u32) -> impl Iterator<Item = &'a [u8]> {
    parts.iter().filter_map(move |part| match *part {
        (n, Value::Bytes(message)) if n == number => Some(message),
        _ => None,
    })
}

/// The RLP list of encoded items.
fn list(items: &[u8]) -> Vec<u8> {
    let mut list = Vec::with_capacity(items.len() + 9);
    Header { list: true, payload_length: items.len() }.encode(&mut list);
    list.extend_from_slice(items);
    list
}

fn access_list(parts: &[(u32, Value<'_>)], number: u32) -> Option<Vec<Access>> {
    let tuple = |tuple| {
        let tuple = fields(tuple)?;
        let key = |key| bytes(std::str::from_utf8(key).ok()?);
        Some((bytes(text_field(&tuple, 1)?)?, messages(&tuple, 2).map(key).collect::<Option<_>>()?))
    };
    messages(parts, number).map(tuple).collect()
}

fn authorizations(parts: &[(u32, Value<'_>)], number: u32) -> Option<Vec<Authorization>> {
    let authorization = |authorization| {
        let authorization = fields(authorization)?;
        let nonce = authorization.iter().rev().find_map(|part| match *part {
            (3, Value::Varint(nonce)) => Some(nonce),
            _ => None,
        });
        Some(Authorization {
            chain_id: U256::from_str_radix(text_field(&authorization, 1)?, 10).ok()?,
            address: bytes(text_field(&authorization, 2)?)?,
            nonce: nonce.unwrap_or(0),
            signature: bytes_field(&authorization, 4)?.try_into().ok()?,
        })
    };
    messages(parts, number).map(authorization).collect()
}
