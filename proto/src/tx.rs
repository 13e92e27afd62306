//! The messages of a signed Cosmos transaction, as plain prost structs.
//!
//! These are the raw structs of `cosmrs::proto`, not cosmrs' domain types: those lose unknown sign modes, reject
//! amounts over 128 bits and fail on unknown kinds of keys. They are built on their own
//! version of prost, so decode them with the [`Message`] of this module.

/// Decoding and encoding of the messages below.
pub use cosmrs::proto::traits::Message;

/// A type URL and the bytes of a message of that type: messages, public keys, extension options.
pub use cosmrs::Any;

/// Messages that are executed on behalf of other accounts.
pub use cosmrs::proto::cosmos::authz::v1beta1::MsgExec;

/// A denomination and an amount as a decimal string.
pub use cosmrs::proto::cosmos::base::v1beta1::Coin;

/// The authenticating part of a transaction: signers and fee.
pub use cosmrs::proto::cosmos::tx::v1beta1::AuthInfo;

/// The fee of a transaction, its payer, and the gas limit.
pub use cosmrs::proto::cosmos::tx::v1beta1::Fee;

/// The sign mode of a signer: a bare number, which may be outside of the enum.
pub use cosmrs::proto::cosmos::tx::v1beta1::ModeInfo;

/// One signer: public key, sign mode, account sequence.
pub use cosmrs::proto::cosmos::tx::v1beta1::SignerInfo;

/// The signed content of a transaction: messages, memo, time-out.
pub use cosmrs::proto::cosmos::tx::v1beta1::TxBody;

/// A transaction as in a block: the encoded body and authentication, and the signatures over both.
pub use cosmrs::proto::cosmos::tx::v1beta1::TxRaw;

#[cfg(test)]
mod tests {
    use super::{Message, TxBody, TxRaw};

    #[test]
    fn a_raw_transaction_decodes_in_two_steps() {
        let body = TxBody { memo: "hello".to_owned(), ..TxBody::default() };
        let raw = TxRaw {
            body_bytes: body.encode_to_vec(),
            auth_info_bytes: Vec::new(),
            signatures: vec![vec![7; 64]],
        };
        let decoded = TxRaw::decode(raw.encode_to_vec().as_slice()).unwrap();
        assert_eq!(decoded.signatures, [[7; 64]]);
        assert_eq!(TxBody::decode(decoded.body_bytes.as_slice()).unwrap(), body);
    }
}
