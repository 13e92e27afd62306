//! A Cosmos transaction decoded from its raw bytes, as far as the index needs to look inside.
//!
//! Blocks may contain bytes that are not a transaction (vote data of layer one, a type that an upgrade removed): those
//! are an error here, and the caller must still count and record them. Sign modes and amounts are
//! not interpreted: 9999 and 2^200 are preserved.

use cosmrs::proto::Any;
use cosmrs::proto::cosmos::tx::v1beta1::mode_info::Sum;
use cosmrs::proto::cosmos::tx::v1beta1::{AuthInfo, SignerInfo as RawSignerInfo, TxBody};
use cosmrs::proto::prost::{DecodeError, Message as _};
use thiserror::Error;

pub use crate::evm::eth_tx::is_eth_tx;
pub use crate::hash::tx_hash;
use crate::wire::{Value, fields};

/// The parts of a transaction that the index uses.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecodedTx {
    /// The top-level messages, in order.
    pub messages: Vec<TypedBytes>,
    /// The message-type set: distinct names of the top-level messages without the leading `/`, sorted. Messages inside
    /// others (authz, groups, hooks) do not count.
    pub message_types: Vec<String>,
    /// The memo.
    pub memo: String,
    /// The declared fee, in the declared order.
    pub fee: Vec<Coin>,
    /// The fee payer if not the first signer; mostly empty.
    pub fee_payer: String,
    /// One entry per signer.
    pub signer_infos: Vec<SignerInfo>,
    /// The signatures; may be empty byte strings.
    pub signatures: Vec<Vec<u8>>,
}

/// A protobuf message with its type URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TypedBytes {
    /// `/package.Name`.
    pub type_url: String,
    /// The encoded message.
    pub value: Vec<u8>,
}

/// An amount of a token, the amount as the transaction wrote it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coin {
    /// The token.
    pub denom: String,
    /// A decimal number in transactions that a node accepts; not checked here.
    pub amount: String,
}

/// A signer's entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SignerInfo {
    /// The key; may be absent if the account has one on the chain.
    pub public_key: Option<TypedBytes>,
    /// The sign mode.
    pub mode: SignMode,
    /// The account's sequence number.
    pub sequence: u64,
}

/// The sign mode of a signer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SignMode {
    /// One signature; its mode's number, which may be outside the enum.
    Single(i32),
    /// Several keys of a multisig.
    Multi,
    /// Unspecified.
    #[default]
    Absent,
}

/// Errors of decoding a transaction.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NotATx {
    /// The bytes are not exactly body, auth info and signatures, in this order (ADR-027).
    #[error("raw bytes of length {0} are not framed as a transaction (ADR-027)")]
    Frame(usize),
    /// The body does not decode.
    #[error("transaction body: {0}")]
    Body(DecodeError),
    /// The auth info does not decode.
    #[error("transaction auth info: {0}")]
    AuthInfo(DecodeError),
}

impl DecodedTx {
    /// Decodes a raw transaction.
    pub fn decode(raw: &[u8]) -> Result<Self, NotATx> {
        let frame = Frame::read(raw).ok_or(NotATx::Frame(raw.len()))?;
        let body = TxBody::decode(frame.body).map_err(NotATx::Body)?;
        let auth = AuthInfo::decode(frame.auth_info).map_err(NotATx::AuthInfo)?;
        let messages: Vec<TypedBytes> = body.messages.into_iter().map(typed_bytes).collect();
        let fee = auth.fee.unwrap_or_default();
        Ok(Self {
            message_types: message_types(&messages),
            messages,
            memo: body.memo,
            fee: fee.amount.into_iter().map(|c| Coin { denom: c.denom, amount: c.amount }).collect(),
            fee_payer: fee.payer,
            signer_infos: auth.signer_infos.into_iter().map(signer_info).collect(),
            signatures: frame.signatures.into_iter().map(<[u8]>::to_vec).collect(),
        })
    }
}

/// True if a transaction is valid in any order, so that it raises no sequence (SDK 0.53, `TxBody.unordered`). Also true
/// for bytes that cannot be decoded.
pub fn is_unordered(raw: &[u8]) -> bool {
    let body = Frame::read(raw).and_then(|frame| fields(frame.body));
    body.is_none_or(|body| {
        body.iter().any(|(number, value)| *number == 4 && matches!(value, Value::Varint(1..)))
    })
}

/// The parts of a raw transaction. Only ADR-027's form is accepted, as on the chain, so that other bytes do not
/// decode to an empty transaction by chance.
struct Frame<'a> {
    body: &'a [u8],
    auth_info: &'a [u8],
    signatures: Vec<&'a [u8]>,
}

impl<'a> Frame<'a> {
    fn read(raw: &'a [u8]) -> Option<Self> {
        let mut parts = fields(raw)?.into_iter().peekable();
        let mut take = |number| match parts.next_if(|part| part.0 == number) {
            Some((_, Value::Bytes(bytes))) => Some(bytes),
            _ => None,
        };
        let (body, auth_info) = (take(1)?, take(2)?);
        let signatures = std::iter::from_fn(|| take(3)).collect();
        parts.next().is_none().then_some(Self { body, auth_info, signatures })
    }
}

fn message_types(messages: &[TypedBytes]) -> Vec<String> {
    let name = |message: &TypedBytes| {
        let url = &message.type_url;
        url.strip_prefix('/').unwrap_or(url).to_owned()
    };
    let mut names: Vec<String> = messages.iter().map(name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn signer_info(raw: RawSignerInfo) -> SignerInfo {
    let mode = match raw.mode_info.and_then(|mode| mode.sum) {
        Some(Sum::Single(single)) => SignMode::Single(single.mode),
        Some(Sum::Multi(_)) => SignMode::Multi,
        None => SignMode::Absent,
    };
    SignerInfo { public_key: raw.public_key.map(typed_bytes), mode, sequence: raw.sequence }
}

fn typed_bytes(any: Any) -> TypedBytes {
    TypedBytes { type_url: any.type_url, value: any.value }
}
