//! Descriptors compiled into what printing needs: small tables that refer to each other by index.
//!
//! Fields stand in declaration order, the order in which a node prints them.

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
    /// Index of a field by number; `expected` is looked at first, as fields mostly come in order.
    pub(crate) fn find(&self, number: u32, expected: usize) -> Option<usize> {
        if self.fields.get(expected).is_some_and(|field| field.number == number) {
            return Some(expected);
        }
        let position = self.by_number.binary_search_by_key(&number, |entry| entry.0);
        position.map(|position| self.by_number[position].1).ok()
    }
}

/// How a message is printed: most as objects, some of Google's in a form of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Object,
    /// An object too, but inside an Any it stands under `"value"` (`google.protobuf.Empty`).
    WellKnownObject,
    Any,
    Timestamp,
    Duration,
    /// As its only field is: wrappers, Struct, ListValue.
    Transparent,
    /// As the one member that is set: `google.protobuf.Value`.
    Value,
    /// Some descriptor refers to it, but it is not in the set.
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

    /// Whether a value laid out like this can be one of this field.
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

/// What is printed for a single field (or the value of a map entry) that is not on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Absent {
    /// Nothing: a member of a oneof.
    Omit,
    /// `null`: a nil pointer in Go.
    Null,
    /// The zero value in Go.
    Zero,
}

/// Type of a field's value, as far as it decides the JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Number(Number),
    /// Index into the enums.
    Enum(usize),
    Text,
    Bytes,
    /// Bytes as an upper-case hex string (CometBFT's `HexBytes`).
    Hex,
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
    /// A proto2 group: known to be one, never printed.
    Group,
}

impl Kind {
    /// How one value is laid out.
    pub(crate) fn wire(self) -> Wire {
        match self {
            Self::Number(number) => number.wire(),
            Self::Enum(_) => Wire::Varint,
            Self::Group => Wire::Group,
            _ => Wire::Bytes,
        }
    }
}

/// The scalar types that are numbers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    Bool,
    Int32,
    Int64,
    Uint32,
    Uint64,
    Sint32,
    Sint64,
    Fixed32,
    Fixed64,
    Sfixed32,
    Sfixed64,
    Float,
    Double,
}

impl Number {
    /// An integer of 64 bits, which JSON holds as a string.
    pub(crate) fn is_wide(self) -> bool {
        matches!(self, Self::Int64 | Self::Uint64 | Self::Sint64 | Self::Fixed64 | Self::Sfixed64)
    }

    fn wire(self) -> Wire {
        match self {
            Self::Fixed32 | Self::Sfixed32 | Self::Float => Wire::Fixed32,
            Self::Fixed64 | Self::Sfixed64 | Self::Double => Wire::Fixed64,
            _ => Wire::Varint,
        }
    }
}

/// An enum type.
#[derive(Debug)]
pub(crate) struct Enum {
    /// Numbers, ascending, with their name in quotes.
    pub(crate) names: Box<[(i32, Box<str>)]>,
    /// What any other number is printed as; the bare number if `None`.
    pub(crate) other: Option<&'static str>,
}

impl Enum {
    /// The JSON of a number, unless it is to be the bare number.
    pub(crate) fn json(&self, number: i32) -> Option<&str> {
        match self.names.binary_search_by_key(&number, |entry| entry.0) {
            Ok(position) => Some(&self.names[position].1),
            Err(_) => self.other,
        }
    }
}
