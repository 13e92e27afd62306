//! An Ethereum transaction as its sender signed it: its bytes (EIP-2718), their hash, and the fields in them.

use alloy::primitives::{Address, U256, keccak256};
use alloy::rlp::{Decodable, Encodable as _, Header};

use super::eth_form::{Access, Authorization};
use crate::hash::Hash;
use crate::key;

/// A signed Ethereum transaction of type 0 to 4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Envelope {
    /// Its bytes (EIP-2718).
    pub(crate) raw: Vec<u8>,
    pub(crate) hash: Hash,
    /// 0 to 4.
    pub(crate) kind: u8,
    /// `None` for a transaction that is valid on every chain (before EIP-155).
    pub(crate) chain_id: Option<u64>,
    pub(crate) nonce: u64,
    /// Equal to `fee_cap` where a transaction has one price.
    pub(crate) tip_cap: U256,
    pub(crate) fee_cap: U256,
    pub(crate) gas_limit: u64,
    /// `None` for a creation.
    pub(crate) to: Option<[u8; 20]>,
    pub(crate) value: U256,
    pub(crate) input: Vec<u8>,
    pub(crate) access_list: Vec<Access>,
    pub(crate) authorizations: Vec<Authorization>,
    /// As it is written: with the chain's id in a legacy transaction.
    pub(crate) v: U256,
    pub(crate) r: U256,
    pub(crate) s: U256,
    /// What is signed, without its hash.
    signed: Vec<u8>,
}

impl Envelope {
    /// Reads a transaction; `None` if the bytes are not exactly one of a known type.
    pub(crate) fn read(raw: &[u8]) -> Option<Self> {
        let (kind, mut rest) = match raw.first()? {
            0xc0.. => (0, raw),
            kind @ 1..=4 => (*kind, &raw[1..]),
            _ => return None,
        };
        let mut fields = list(&mut rest)?;
        if !rest.is_empty() {
            return None;
        }
        let all = fields;
        let mut read = Self::fields(kind, &mut fields)?;
        let unsigned = all.len() - fields.len();
        (read.v, read.r, read.s) = (number(&mut fields)?, number(&mut fields)?, number(&mut fields)?);
        if !fields.is_empty() {
            return None;
        }
        (read.raw, read.hash) = (raw.to_vec(), keccak256(raw).0);
        if kind == 0 {
            // EIP-155 puts the chain id of a legacy transaction into its signature.
            let v: u64 = read.v.try_into().ok()?;
            read.chain_id = v.checked_sub(35).map(|both| both / 2);
        }
        read.signed = read.signed_bytes(&all[..unsigned]);
        Some(read)
    }

    /// The fields before the signature.
    fn fields(kind: u8, from: &mut &[u8]) -> Option<Self> {
        let chain_id = if kind == 0 { None } else { Some(u64::decode(from).ok()?) };
        let nonce = u64::decode(from).ok()?;
        let tip_cap = if kind >= 2 { Some(number(from)?) } else { None };
        let fee_cap = number(from)?;
        let gas_limit = u64::decode(from).ok()?;
        let to = match bytes(from)? {
            [] => None,
            to => Some(to.try_into().ok()?),
        };
        let (value, input) = (number(from)?, bytes(from)?.to_vec());
        let access_list = if kind == 0 { Vec::new() } else { access_list(from)? };
        if kind == 3 {
            // The price and the hashes of blobs, which are no part of what is shown.
            number(from)?;
            list(from)?;
        }
        let authorizations = if kind == 4 { authorizations(from)? } else { Vec::new() };
        let tip_cap = tip_cap.unwrap_or(fee_cap);
        Some(Self {
            raw: Vec::new(),
            hash: Hash::default(),
            kind,
            chain_id,
            nonce,
            tip_cap,
            fee_cap,
            gas_limit,
            to,
            value,
            input,
            access_list,
            authorizations,
            v: U256::ZERO,
            r: U256::ZERO,
            s: U256::ZERO,
            signed: Vec::new(),
        })
    }

    /// The bytes whose hash is signed, from the encoded fields before the signature.
    fn signed_bytes(&self, fields: &[u8]) -> Vec<u8> {
        let mut items = fields.to_vec();
        if let (0, Some(id)) = (self.kind, self.chain_id) {
            id.encode(&mut items);
            items.extend_from_slice(&[0x80; 2]);
        }
        let mut out = Vec::with_capacity(items.len() + 10);
        if self.kind != 0 {
            out.push(self.kind);
        }
        Header { list: true, payload_length: items.len() }.encode(&mut out);
        out.extend_from_slice(&items);
        out
    }

    /// The parity of the signature.
    fn parity(&self) -> u8 {
        let one = U256::from(1);
        match (self.kind, self.chain_id) {
            (0, Some(id)) => u8::from(self.v == U256::from(id) * U256::from(2) + U256::from(36)),
            (0, None) => u8::from(self.v == U256::from(28)),
            _ => u8::from(self.v == one),
        }
    }

    /// The address whose key signed it; `None` if no key did.
    pub(crate) fn sender(&self) -> Option<[u8; 20]> {
        let mut signature = [0; 65];
        signature[..32].copy_from_slice(&self.r.to_be_bytes::<32>());
        signature[32..64].copy_from_slice(&self.s.to_be_bytes::<32>());
        signature[64] = self.parity();
        key::recover(&keccak256(&self.signed).0, &signature)
    }

    /// The contract that it creates if it succeeds: an address is spent also by a failed creation.
    pub(crate) fn created(&self, sender: [u8; 20]) -> Option<[u8; 20]> {
        self.to.is_none().then(|| Address::from(sender).create(self.nonce).into())
    }

    /// What it pays for a unit of gas in a block with this base fee, without one its highest price.
    pub(crate) fn price(&self, base_fee: Option<U256>) -> U256 {
        match base_fee {
            Some(base_fee) => self.fee_cap.min(self.tip_cap.saturating_add(base_fee)),
            None => self.fee_cap,
        }
    }
}

/// The content of a list, behind which `from` continues.
fn list<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    Header::decode_bytes(from, true).ok()
}

fn bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    Header::decode_bytes(from, false).ok()
}

fn number(from: &mut &[u8]) -> Option<U256> {
    U256::decode(from).ok()
}

fn access_list(from: &mut &[u8]) -> Option<Vec<Access>> {
    let (mut tuples, mut all) = (list(from)?, Vec::new());
    while !tuples.is_empty() {
        let mut tuple = list(&mut tuples)?;
        let address = <[u8; 20]>::decode(&mut tuple).ok()?;
        let (mut keys, mut found) = (list(&mut tuple)?, Vec::new());
        while !keys.is_empty() {
            found.push(<[u8; 32]>::decode(&mut keys).ok()?);
        }
        all.push((address, found));
    }
    Some(all)
}

fn authorizations(from: &mut &[u8]) -> Option<Vec<Authorization>> {
    let (mut tuples, mut all) = (list(from)?, Vec::new());
    while !tuples.is_empty() {
        let mut tuple = list(&mut tuples)?;
        let chain_id = number(&mut tuple)?;
        let address = <[u8; 20]>::decode(&mut tuple).ok()?;
        let nonce = u64::decode(&mut tuple).ok()?;
        let parity = u8::decode(&mut tuple).ok()?;
        let mut signature = [0; 65];
        signature[..32].copy_from_slice(&number(&mut tuple)?.to_be_bytes::<32>());
        signature[32..64].copy_from_slice(&number(&mut tuple)?.to_be_bytes::<32>());
        signature[64] = parity;
        all.push(Authorization { chain_id, address, nonce, signature });
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use alloy::primitives::hex;
    use proptest::prelude::*;

    use super::*;

    /// The example of EIP-155.
    const LEGACY: &[u8] = &hex!(
        "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe"
        "537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
    );

    #[test]
    fn a_legacy_transaction_names_its_chain_and_its_sender_in_its_signature() {
        let read = Envelope::read(LEGACY).unwrap();
        assert_eq!((read.kind, read.chain_id, read.nonce, read.gas_limit), (0, Some(1), 9, 21_000));
        assert_eq!(read.sender(), Some(hex!("9d8a62f656a8d1615c1294fd71e9cfb3e4855a4f")));
        assert_eq!(read.price(Some(U256::from(7))), U256::from(20_000_000_000_u64));
        for wrong in [&LEGACY[1..], &LEGACY[..LEGACY.len() - 1], &[LEGACY, &[0]].concat(), b"", &[5, 0xc0]] {
            assert_eq!(Envelope::read(wrong), None);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes in any::<Vec<u8>>(), at in 0..LEGACY.len(), byte: u8) {
            let _read = Envelope::read(&bytes);
            bytes.insert(0, 2);
            let _read = Envelope::read(&bytes);
            let mut near = LEGACY.to_vec();
            near[at] = byte;
            let _sender = Envelope::read(&near).map(|read| read.sender());
        }
    }
}
