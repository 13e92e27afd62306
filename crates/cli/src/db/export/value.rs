//! Keys and values as JSON: keys as arrays, messages as objects, records as they are served, bytes as hexadecimal
//! digits.

use schema::block::Block;
use schema::descriptors::DescriptorSet;
use schema::internal_tx::BlockCalls;
use schema::keys::{AccountKey, Role};
use schema::msg_set::MsgSet;
use schema::nft::{
    About, Change, Collection, Entry, Mint, NewCollection, NewUri, Origin, PendingEvent, Place, Question,
    RangeCursor, Renewal, Subject, Token, TokenKey, TokenName, Transfer,
};
use schema::payload::DictionaryRow;
use schema::postings::Postings;
use schema::rich::{Erc20, Undo, UndoRow};
use serde_json::{Value, json};
use store::Message;
use store::key::Text;

/// A stored key or value.
pub(super) trait Shown {
    /// The JSON of it.
    fn shown(&self) -> Value;
}

impl Shown for () {
    fn shown(&self) -> Value {
        Value::Null
    }
}

macro_rules! scalars {
    ($($scalar:ty),*) => {$(
        impl Shown for $scalar {
            fn shown(&self) -> Value {
                json!(self)
            }
        }
    )*};
}

scalars!(bool, u16, u32, u64, i32, i64, String);

impl Shown for Vec<u8> {
    fn shown(&self) -> Value {
        hex::encode(self).into()
    }
}

impl<const N: usize> Shown for [u8; N] {
    fn shown(&self) -> Value {
        hex::encode(self).into()
    }
}

impl Shown for Text {
    fn shown(&self) -> Value {
        self.0.shown()
    }
}

impl Shown for AccountKey {
    fn shown(&self) -> Value {
        hex::encode(self.0.as_bytes()).into()
    }
}

impl Shown for Role {
    fn shown(&self) -> Value {
        match self {
            Self::Involved => "involved".into(),
            Self::Signer => "signer".into(),
        }
    }
}

impl<A: Shown, B: Shown> Shown for (A, B) {
    fn shown(&self) -> Value {
        [components(&self.0), components(&self.1)].concat().into()
    }
}

impl<A: Shown, B: Shown, C: Shown> Shown for (A, B, C) {
    fn shown(&self) -> Value {
        [components(&self.0), components(&self.1), components(&self.2)].concat().into()
    }
}

/// The components of a key, nested tuples flattened.
pub(super) fn components(key: &impl Shown) -> Vec<Value> {
    match key.shown() {
        Value::Null => Vec::new(),
        Value::Array(components) => components,
        component => vec![component],
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
                // Destructures every field, so that a new field does not compile until it is exported.
                let Self { $($field),* } = self;
                json!({ $(stringify!($field): $field.shown()),* })
            }
        }
    )*};
}

objects! {
    BlockCalls { first, counts }
    MsgSet { names, first_tx }
    DescriptorSet { first_height, compressed }
    DictionaryRow { kind, bytes }
    Collection { name, origin_name, creator, height, time, name_too_long }
    Token { owner, uri, object, height, time, outcome, open, refusals, minted }
    TokenName { collection, token_id }
    Erc20 { complete, drifting, silent }
    Mint { token, owner, uri, object, outcome }
    Transfer { token, owner }
    NewUri { token, uri, outcome, refusals }
    Origin { local, origin }
    NewCollection { address, collection }
    PendingEvent { time, tx, kind, collection, token_id, object, owner, uri, range }
    Subject { address, token_id, owner }
    Entry { time, tx, change }
    Question { about, later, rest }
    RangeCursor { collection, after }
    Renewal { range, next }
    Undo { rows, from }
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

lists!(u64, String, Place, UndoRow);

/// As in keys: its components.
impl Shown for Place {
    fn shown(&self) -> Value {
        json!([self.height, self.ordinal, self.part])
    }
}

impl Shown for Postings {
    fn shown(&self) -> Value {
        self.iter().map(|(seq, number)| json!([seq, number])).collect()
    }
}

impl Shown for Block {
    fn shown(&self) -> Value {
        let Self { first_tx, txs, first_evm_tx, evm_txs, time, json: record } = self;
        // A record that does not parse is exported as bytes.
        let record: Value = serde_json::from_slice(record).unwrap_or_else(|_| hex::encode(record).into());
        json!({
            "first_tx": first_tx, "txs": txs, "first_evm_tx": first_evm_tx, "evm_txs": evm_txs, "time": time,
            "json": record,
        })
    }
}

macro_rules! variants {
    ($($kind:ident { $($variant:ident $name:literal),* $(,)? })*) => {$(
        impl Shown for $kind {
            fn shown(&self) -> Value {
                match self {
                    $(Self::$variant(it) => json!({ $name: it.shown() }),)*
                }
            }
        }
    )*};
}

variants! {
    Change {
        Collection "collection", Mint "mint", Transfer "transfer", Burn "burn", Uri "uri", Origin "origin",
    }
    About { Collection "collection", Object "object", Uri "uri", Range "range", Proposer "proposer" }
}
