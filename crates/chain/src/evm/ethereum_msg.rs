//! The Ethereum transactions in the messages of a Cosmos transaction, on chains with cosmos/evm or ethermint.

use alloy::primitives::keccak256;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::envelope::Envelope;
use super::ethermint_tx;
use super::flavour::Flavour;
use super::log::bytes;
use crate::hash::Hash;
use crate::serde_lenient::JsonText;
use crate::tx::{DecodedTx, TypedBytes};
use crate::wire::{bytes_field, fields};

/// A message with an Ethereum transaction.
#[derive(Debug)]
pub(crate) struct EthereumMsg {
    /// Its place among the messages.
    pub(crate) place: usize,
    /// The Ethereum hash.
    pub(crate) hash: Hash,
    /// The transaction type (EIP-2718).
    pub(crate) kind: u8,
    /// The transaction; `None` if its type is unknown here.
    pub(crate) envelope: Option<Envelope>,
    /// The signer, which the chain has compared with the signature; the zero address if only bytes of an unknown type tell.
    pub(crate) sender: [u8; 20],
}

impl EthereumMsg {
    /// The Ethereum transactions of `tx`, in order.
    pub(crate) fn read_all(tx: &DecodedTx) -> Vec<Self> {
        let messages = tx.messages.iter().enumerate();
        let ethereum = messages.filter(|(_, message)| is_ethereum(&message.type_url));
        ethereum.map(|(place, message)| Self::read(place, message)).collect()
    }

    /// The same of the messages in a stored record.
    pub(crate) fn read_json(messages: &[&RawValue]) -> Vec<Self> {
        let read = |(place, message): (usize, &&RawValue)| {
            let JsonMessage { kind, raw, from, data, hash } = serde_json::from_str(message.get()).ok()?;
            if !is_ethereum(&kind) {
                return None;
            }
            if raw.is_empty() {
                let raw = data.and_then(ethermint_tx::raw_of_json).unwrap_or_default();
                return Some(Self::of(place, &raw, None).stated(&hash));
            }
            let raw = hex::decode(raw.strip_prefix("0x")?).ok()?;
            let named = BASE64.decode(from.as_bytes()).ok().and_then(|from| from.try_into().ok());
            Some(Self::of(place, &raw, named))
        };
        messages.iter().enumerate().filter_map(read).collect()
    }

    /// A chain gets new types of transactions by an upgrade: they have a hash and a sender as the others.
    fn read(place: usize, message: &TypedBytes) -> Self {
        let parts = fields(&message.value).unwrap_or_default();
        if let Some(raw) = bytes_field(&parts, 6) {
            return Self::of(place, raw, bytes_field(&parts, 5).and_then(|from| from.try_into().ok()));
        }
        let raw = bytes_field(&parts, 1).and_then(ethermint_tx::raw_of_message).unwrap_or_default();
        let stated = bytes_field(&parts, 3).map(String::from_utf8_lossy);
        Self::of(place, &raw, None).stated(stated.as_deref().unwrap_or_default())
    }

    /// The same with the hash that its message states: fields from which another one follows are not those of the transaction.
    fn stated(self, hash: &str) -> Self {
        match bytes(hash) {
            Some(hash) if hash != self.hash => Self { hash, envelope: None, sender: [0; 20], ..self },
            _ => self,
        }
    }

    fn of(place: usize, raw: &[u8], named: Option<[u8; 20]>) -> Self {
        let envelope = Envelope::read(raw);
        let sender = named.or_else(|| envelope.as_ref()?.sender()).unwrap_or_default();
        let hash = envelope.as_ref().map_or_else(|| keccak256(raw).0, |envelope| envelope.hash);
        let kind = envelope.as_ref().map_or_else(|| raw.first().copied().unwrap_or_default(), |it| it.kind);
        Self { place, hash, kind, envelope, sender }
    }

    /// The contract that it creates if it succeeds.
    pub(crate) fn created(&self) -> Option<[u8; 20]> {
        self.envelope.as_ref()?.created(self.sender)
    }
}

/// The members of a message in a stored record.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct JsonMessage<'a> {
    #[serde(rename = "@type")]
    kind: JsonText<'a>,
    raw: JsonText<'a>,
    from: JsonText<'a>,
    /// Where there is no `raw`.
    #[serde(borrow)]
    data: Option<&'a RawValue>,
    hash: JsonText<'a>,
}

/// True for the type of a message with an Ethereum transaction.
pub(crate) fn is_ethereum(type_url: &str) -> bool {
    let mut flavours = Flavour::ALL.into_iter().filter(|flavour| flavour.has_ethereum_messages());
    flavours.any(|flavour| flavour.message() == type_url)
}
