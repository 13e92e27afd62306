//! Compiled descriptors: tables that refer to each other by index.
//!
//! Fields are in declaration order, in which a node prints them.

use crate::descriptor::FieldType;
use crate::json::wire::Wire;

/// A message type.
#[derive(Debug)]
pub(crate) struct Message {
    /// Full name without a leading dot.
    pub(crate) name: Box<str>,
    pub(crate) form: Form,
    pub(crate) fields: Box<[Field]>,
    /// Field numbers, ascending, with the field's index.
    pub(crate) by_number: Box<[(u32, usize)]>,
    /// Names of the fields of the `cosmos.msg.v1.signer` option.
    pub(crate) signers: Box<[String]>,
}

impl Message {
    /// Index of a field by number; `expected` is tried first, as fields mostly come in order.
    pub(crate) fn find(&self, number: u32, expected: usize) -> Option<usize> {
        if self.fields.get(expected).is_some_and(|field| field.number == number) {
            return Some(expected);
        }
        let position = self.by_number.binary_search_by_key(&number, |entry| entry.0);
        position.map(|position| self.by_number[position].1).ok()
    }
}

/// The JSON form of a message: most are objects, some of Google's types have special forms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    /// An object too, but inside an Any it is under `"value"` (`google.protobuf.Empty`).
    WellKnownObject,
    Any,
    Timestamp,
    Duration,
    /// The form of its only field: wrappers, Struct, ListValue.
    Transparent,
    /// The form of the member that is set: `google.protobuf.Value`.
    Value,
    /// Some descriptor refers to it, but the set lacks it.
    Missing,
}

impl Form {
    /// Inside an Any, printed as `{"@type":…,"value":…}`.
    pub(crate) fn is_well_known(self) -> bool {
        !matches!(self, Self::Object | Self::Missing)
    }
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// `"name":`, ready to be written.
    pub(crate) key: Box<str>,
    pub(crate) kind: Kind,
    pub(crate) shape: Shape,
    pub(crate) absent: Absent,
    pub(crate) oneof: Option<i32>,
}

impl Field {
    /// The original name.
    pub(crate) fn name(&self) -> &str {
        self.key.trim_matches([':', '"'])
    }

    /// True if a value with this wire type can belong to the field.
    pub(crate) fn accepts(&self, wire: Wire) -> bool {
        let own = self.kind.wire();
        wire == own || (wire == Wire::Bytes && self.shape == Shape::Many && own != Wire::Group)
    }
}

/// Cardinality.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    One,
    Many,
    /// The kind is the entry message, whose fields 1 and 2 are key and value.
    Map,
}

/// The JSON of a singular field (or the value of a map entry) that is absent on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Omitted: a member of a oneof.
    Omit,
    /// `null`: a nil pointer in Go.
    Null,
    /// The zero value in Go.
    Zero,
}

/// Type of a field's value, as far as it affects the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A scalar that is a number on the wire.
    Number(FieldType),
    /// Index into the enums.
    Enum(usize),
    Text,
    Bytes,
    /// Bytes as an upper-case hex string (CometBFT's `HexBytes`).
    Hex,
    /// The bytes of an Ethereum transaction (`EthereumTx`): `0x` and lower-case hex, `null` for none.
    EthereumTx,
    /// Bytes that are JSON themselves (`RawContractMessage`, `json.RawMessage`).
    Json,
    /// `cosmossdk.io/math.Int`: decimal digits on the wire.
    Integer,
    /// `cosmossdk.io/math.LegacyDec`: decimal digits on the wire, scaled by 10^18.
    Decimal,
    /// A Timestamp held as Go's `time.Time`.
    Time,
    /// A Duration held as Go's `time.Duration`.
    Span,
    /// Index into the messages.
    Message(usize),
    /// A proto2 group, which is never printed.
    Group,
}

impl Kind {
    /// Wire type of a value.
    pub(crate) fn wire(self) -> Wire {
        match self {
            Self::Number(FieldType::Fixed32 | FieldType::Sfixed32 | FieldType::Float) => Wire::Fixed32,
            Self::Number(FieldType::Fixed64 | FieldType::Sfixed64 | FieldType::Double) => Wire::Fixed64,
            Self::Number(_) | Self::Enum(_) => Wire::Varint,
            Self::Group => Wire::Group,
            _ => Wire::Bytes,
        }
    }
}

/// An enum type.
#[derive(Debug)]
pub(crate) struct Enum {
    /// Numbers, ascending, with their name in quotes.
    pub(crate) names: Box<[(i32, Box<str>)]>,
    /// The form of all other numbers; the bare number if `None`.
    pub(crate) other: Option<&'static str>,
}

impl Enum {
    /// The JSON of a number; `None` for the bare number.
    pub(crate) fn json(&self, number: i32) -> Option<&str> {
        match self.names.binary_search_by_key(&number, |entry| entry.0) {
            Ok(position) => Some(&self.names[position].1),
            Err(_) => self.other,
        }
    }
}
