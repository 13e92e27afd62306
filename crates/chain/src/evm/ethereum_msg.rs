//! The Ethereum transactions in the messages of a Cosmos transaction, on chains with cosmos/evm or ethermint.

use super::envelope::Envelope;
use super::flavour::Flavour;
use crate::tx::{DecodedTx, TypedBytes};
use crate::wire::{bytes_field, fields};

/// A message with an Ethereum transaction.
#[derive(Debug)]
pub(crate) struct EthereumMsg {
    pub(crate) envelope: Envelope,
    /// The signer, which the chain has compared with the signature.
    pub(crate) sender: [u8; 20],
}

/// A message whose transaction has a type that is unknown here, or that is none.
#[derive(Debug)]
pub(crate) struct Unreadable;

impl EthereumMsg {
    /// The Ethereum transactions of `tx`, in order.
    pub(crate) fn read_all(tx: &DecodedTx) -> Result<Vec<Self>, Unreadable> {
        tx.messages.iter().filter(|message| is_ethereum(&message.type_url)).map(Self::read).collect()
    }

    fn read(message: &TypedBytes) -> Result<Self, Unreadable> {
        let parts = fields(&message.value).ok_or(Unreadable)?;
        let envelope = bytes_field(&parts, 6).and_then(Envelope::read).ok_or(Unreadable)?;
        let named = bytes_field(&parts, 5).and_then(|from| <[u8; 20]>::try_from(from).ok());
        let sender = named.or_else(|| envelope.sender()).ok_or(Unreadable)?;
        Ok(Self { envelope, sender })
    }
}

/// True for the type of a message with an Ethereum transaction.
pub(crate) fn is_ethereum(type_url: &str) -> bool {
    let mut flavours = Flavour::ALL.into_iter().filter(|flavour| flavour.has_ethereum_messages());
    flavours.any(|flavour| flavour.message() == type_url)
}
