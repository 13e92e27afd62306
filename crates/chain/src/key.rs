//! The address of a public key, for every key type that an Initia chain accepts.
//!
//! The rules are those of the chain's own key types. A key that is unknown or malformed has no address;
//! it is never an error, because the chain decides what a transaction may carry.

use std::num::NonZeroUsize;

use alloy::primitives::keccak256;
use cosmrs::proto::prost::encoding::{WireType, encode_key, encode_varint};
use k256::elliptic_curve::PrimeField as _;
use k256::elliptic_curve::ops::Reduce;
use k256::elliptic_curve::point::DecompressPoint as _;
use k256::elliptic_curve::scalar::IsHigh as _;
use k256::elliptic_curve::sec1::ToEncodedPoint as _;
use k256::elliptic_curve::subtle::Choice;
use k256::{AffinePoint, FieldBytes, ProjectivePoint, PublicKey, Scalar};
use lru::LruCache;
use ripemd::Ripemd160;
use rustc_hash::FxBuildHasher;
use sha2::{Digest, Sha256};
use sha3::Sha3_256;

use crate::address::Account;
use crate::wire::{Value, bytes_field, fields, push_len_prefixed};

const SECP256K1: &str = "/cosmos.crypto.secp256k1.PubKey";
const SECP256R1: &str = "/cosmos.crypto.secp256r1.PubKey";
const ED25519: &str = "/cosmos.crypto.ed25519.PubKey";
const MULTISIG: &str = "/cosmos.crypto.multisig.LegacyAminoPubKey";
const ETH_SECP256K1: &str = "/initia.crypto.v1beta1.ethsecp256k1.PubKey";
/// The same key in cosmos/evm, in ethermint and in Injective.
const OTHER_ETH_SECP256K1: [&str; 3] = [
    "/cosmos.evm.crypto.v1.ethsecp256k1.PubKey",
    "/ethermint.crypto.v1.ethsecp256k1.PubKey",
    "/injective.crypto.v1beta1.ethsecp256k1.PubKey",
];
const DERIVABLE: &str = "/initia.crypto.v1.derivable.PubKey";
const FORWARDING: &str = "/noble.forwarding.v1.ForwardingPubKey";

/// Prefixes of amino, the encoding that multisig addresses still hash: the first bytes of the hash of the type's name.
const AMINO_SECP256K1: [u8; 4] = [0xeb, 0x5a, 0xe9, 0x87];
const AMINO_ED25519: [u8; 4] = [0x16, 0x24, 0xde, 0x64];
const AMINO_ETH_SECP256K1: [u8; 4] = [0x53, 0x37, 0x13, 0x79];
const AMINO_MULTISIG: [u8; 4] = [0x22, 0xc1, 0xf7, 0xe2];

/// Multisigs nested beyond this depth have no address: external input must not control the recursion depth.
const MAX_NESTING: u8 = 8;
/// The scheme byte of accounts derived by a Move authenticator (`initia:crypto/derivable`).
const DERIVABLE_SCHEME: u8 = 5;

/// The address of a public key given as `google.protobuf.Any`; `None` for an unknown type or a malformed key.
pub fn key_address(type_url: &str, value: &[u8]) -> Option<Account> {
    let parts = fields(value)?;
    let key = bytes_field(&parts, 1);
    match type_url {
        SECP256K1 => {
            let key = sized::<33>(key?)?;
            Account::from_bytes(&Ripemd160::digest(Sha256::digest(key)))
        }
        _ if is_eth(type_url) => eth_address(sized(key?)?),
        ED25519 => Account::from_bytes(&Sha256::digest(sized::<32>(key?)?)[..20]),
        MULTISIG => Account::from_bytes(&Sha256::digest(amino(type_url, value, MAX_NESTING)?)[..20]),
        SECP256R1 => {
            let kind = Sha256::digest(&SECP256R1.as_bytes()[1..]);
            let key = sized::<33>(key?)?;
            Account::from_bytes(&Sha256::new().chain_update(kind).chain_update(key).finalize())
        }
        DERIVABLE => derivable_address(&parts),
        FORWARDING => Account::from_bytes(key?),
        _ => None,
    }
}

/// An LRU cache of the addresses of `ethsecp256k1` keys, whose derivation needs a square root on the curve.
///
/// One per worker.
#[derive(Debug)]
pub struct KeyCache(LruCache<[u8; 33], Account, FxBuildHasher>);

impl KeyCache {
    /// A cache of at most `capacity` keys, 1 or more (66 bytes each, plus the table).
    pub fn new(capacity: usize) -> Self {
        Self(LruCache::with_hasher(NonZeroUsize::new(capacity).unwrap_or(NonZeroUsize::MIN), FxBuildHasher))
    }

    /// [`key_address`], from the cache if present.
    pub fn address(&mut self, type_url: &str, value: &[u8]) -> Option<Account> {
        if !is_eth(type_url) {
            return key_address(type_url, value);
        }
        let key = sized(bytes_field(&fields(value)?, 1)?)?;
        if let Some(address) = self.0.get(key) {
            return Some(*address);
        }
        let address = eth_address(key)?;
        self.0.put(*key, address);
        Some(address)
    }
}

/// True for a key whose address is Ethereum's.
fn is_eth(type_url: &str) -> bool {
    type_url == ETH_SECP256K1 || OTHER_ETH_SECP256K1.contains(&type_url)
}

fn eth_address(key: &[u8; 33]) -> Option<Account> {
    Account::from_bytes(&address_of(&PublicKey::from_sec1_bytes(key).ok()?))
}

fn address_of(key: &PublicKey) -> [u8; 20] {
    let mut address = [0; 20];
    address.copy_from_slice(&keccak256(&key.to_encoded_point(false).as_bytes()[1..])[12..]);
    address
}

/// The Ethereum address whose key made `signature` (r, s and parity) on `hash` (SEC 1, 4.1.6); `None` if no key did.
pub(crate) fn recover(hash: &[u8; 32], signature: &[u8; 65]) -> Option<[u8; 20]> {
    let (r, s) = signature[..64].split_first_chunk::<32>()?;
    let s: &[u8; 32] = s.try_into().ok()?;
    let scalar = |bytes: &[u8; 32]| Option::<Scalar>::from(Scalar::from_repr(FieldBytes::from(*bytes)));
    let (x, r, s) = (FieldBytes::from(*r), scalar(r)?, scalar(s)?);
    // EIP-2: of the two values of s only the lower one is valid.
    if bool::from(s.is_high()) {
        return None;
    }
    let point: Option<AffinePoint> = AffinePoint::decompress(&x, Choice::from(signature[64] & 1)).into();
    let message = <Scalar as Reduce<k256::U256>>::reduce_bytes(&FieldBytes::from(*hash));
    let inverse: Option<Scalar> = r.invert().into();
    let key = (ProjectivePoint::from(point?) * s - ProjectivePoint::GENERATOR * message) * inverse?;
    PublicKey::from_affine(key.to_affine()).ok().map(|key| address_of(&key))
}

/// SHA3-256 over the BCS of the authenticator function and of the key, then the scheme byte.
fn derivable_address(parts: &[(u32, Value<'_>)]) -> Option<Account> {
    // The module's address is text in short hex; BCS writes it as 32 bytes in any case.
    let module = std::str::from_utf8(bytes_field(parts, 1)?).ok()?;
    let module = Account::from_hex_literal(module)?;
    let mut bcs = vec![0; 32 - module.as_bytes().len()];
    bcs.extend_from_slice(module.as_bytes());
    for number in 2..=4 {
        push_len_prefixed(&mut bcs, bytes_field(parts, number).unwrap_or_default());
    }
    bcs.push(DERIVABLE_SCHEME);
    Account::from_bytes(&Sha3_256::digest(&bcs))
}

/// The amino encoding of a key that may be part of a multisig.
fn amino(type_url: &str, value: &[u8], nesting: u8) -> Option<Vec<u8>> {
    let parts = fields(value)?;
    let plain = |prefix: [u8; 4], key: &[u8]| {
        let mut out = prefix.to_vec();
        push_len_prefixed(&mut out, key);
        out
    };
    match type_url {
        SECP256K1 => Some(plain(AMINO_SECP256K1, sized::<33>(bytes_field(&parts, 1)?)?)),
        ETH_SECP256K1 => Some(plain(AMINO_ETH_SECP256K1, sized::<33>(bytes_field(&parts, 1)?)?)),
        ED25519 => Some(plain(AMINO_ED25519, sized::<32>(bytes_field(&parts, 1)?)?)),
        MULTISIG => amino_multisig(&parts, nesting.checked_sub(1)?),
        _ => None,
    }
}

fn amino_multisig(parts: &[(u32, Value<'_>)], nesting: u8) -> Option<Vec<u8>> {
    let mut out = AMINO_MULTISIG.to_vec();
    for part in parts {
        match *part {
            (1, Value::Varint(0)) => {}
            (1, Value::Varint(threshold)) => {
                encode_key(1, WireType::Varint, &mut out);
                encode_varint(threshold, &mut out);
            }
            (2, Value::Bytes(any)) => {
                let any = fields(any)?;
                let type_url = std::str::from_utf8(bytes_field(&any, 1)?).ok()?;
                let key = amino(type_url, bytes_field(&any, 2)?, nesting)?;
                encode_key(2, WireType::LengthDelimited, &mut out);
                push_len_prefixed(&mut out, &key);
            }
            _ => return None,
        }
    }
    Some(out)
}

fn sized<const N: usize>(bytes: &[u8]) -> Option<&[u8; N]> {
    bytes.try_into().ok()
}
