//! Values as JSON: messages as objects, records as they are served, bytes as hexadecimal digits.

use schema::block::Block;
use schema::descriptors::DescriptorSet;
use schema::internal_tx::BlockCalls;
use schema::msg_set::MsgSet;
use schema::nft::{
    About, Change, Collection, Entry, Log, Mint, NewCollection, NewUri, Origin, Question, Subject, Token,
    TokenKey, TokenName, Transfer, Waiter,
};
use schema::payload::DictionaryRow;
use schema::rich::{Erc20, Undo, UndoRow};
use serde_json::{Value, json};
use store::Message;

/// Something that is stored and can be shown.
pub(super) trait Shown {
    /// It as JSON.
    fn shown(&self) -> Value;
}

impl Shown for () {
    fn shown(&self) -> Value {
        Value::Null
    }
}

impl Shown for bool {
    fn shown(&self) -> Value {
        (*self).into()
    }
}

impl Shown for u32 {
    fn shown(&self) -> Value {
        (*self).into()
    }
}

impl Shown for u64 {
    fn shown(&self) -> Value {
        (*self).into()
    }
}

impl Shown for i64 {
    fn shown(&self) -> Value {
        (*self).into()
    }
}

impl Shown for String {
    fn shown(&self) -> Value {
        self.clone().into()
    }
}

impl Shown for Vec<u8> {
    fn shown(&self) -> Value {
        hex::encode(self).into()
    }
}

impl<T: Shown> Shown for Option<T> {
    fn shown(&self) -> Value {
        self.as_ref().map_or(Value::Null, Shown::shown)
    }
}

impl<M: Shown> Shown for Message<M> {
    fn shown(&self) -> Value {
        self.0.shown()
    }
}

macro_rules! objects {
    ($($message:ty { $($field:ident),* $(,)? })*) => {$(
        impl Shown for $message {
            fn shown(&self) -> Value {
                // Every field, or it does not compile.
                let Self { $($field),* } = self;
                json!({ $(stringify!($field): $field.shown()),* })
            }
        }
    )*};
}

objects! {
    BlockCalls { first, count }
    MsgSet { names, first_tx }
    DescriptorSet { first_height, compressed }
    DictionaryRow { kind, bytes }
    Collection { name, origin_name, creator, height, time }
    Token { owner, uri, object, height, time, question }
    TokenName { collection, token_id }
    Erc20 { complete, drifting, silent }
    Mint { token, owner, uri, object, question }
    Transfer { token, owner }
    NewUri { token, uri }
    Origin { local, origin }
    NewCollection { address, collection }
    Waiter { time, tx, kind, collection, token_id, object, owner, uri }
    Subject { address, token_id, owner }
    Log { time, entries }
    Entry { place, tx, change }
    Question { about }
    Undo { rows }
    UndoRow { table, key, value }
    TokenKey { collection, token_id, object }
}

macro_rules! lists {
    ($($element:ty),*) => {$(
        impl Shown for Vec<$element> {
            fn shown(&self) -> Value {
                self.iter().map(Shown::shown).collect()
            }
        }
    )*};
}

lists!(String, Entry, UndoRow);

impl Shown for Block {
    fn shown(&self) -> Value {
        let Self { first_tx, txs, first_evm_tx, evm_txs, time, json: record } = self;
        // What does not parse is shown as it is.
        let record: Value = serde_json::from_slice(record).unwrap_or_else(|_| hex::encode(record).into());
        json!({
            "first_tx": first_tx, "txs": txs, "first_evm_tx": first_evm_tx, "evm_txs": evm_txs, "time": time,
            "json": record,
        })
    }
}

impl Shown for Change {
    fn shown(&self) -> Value {
        match self {
            Self::Collection(new) => json!({ "collection": new.shown() }),
            Self::Mint(mint) => json!({ "mint": mint.shown() }),
            Self::Transfer(transfer) => json!({ "transfer": transfer.shown() }),
            Self::Burn(token) => json!({ "burn": token.shown() }),
            Self::Uri(uri) => json!({ "uri": uri.shown() }),
            Self::Origin(origin) => json!({ "origin": origin.shown() }),
        }
    }
}

impl Shown for About {
    fn shown(&self) -> Value {
        match self {
            Self::Collection(subject) => json!({ "collection": subject.shown() }),
            Self::Object(subject) => json!({ "object": subject.shown() }),
            Self::Uri(token) => json!({ "uri": token.shown() }),
        }
    }
}
