//! File descriptors (`google/protobuf/descriptor.proto`), reduced to the members that decide the JSON of a message.
//!
//! Options that Cosmos chains add are declared as ordinary fields, because a general descriptor library drops
//! them as unknown extensions. Type names in compiled descriptors are fully qualified with a leading dot, so
//! nothing has to be resolved. Left out on purpose: options that do not change the node's JSON (`embed`,
//! `jsontag`, `castrepeated`, `packed`), since the node prints original field names and reads both packings.

use prost::Message;

/// A set of compiled `.proto` files.
#[derive(Clone, PartialEq, Message)]
pub struct FileDescriptorSet {
    /// The files, in any order.
    #[prost(message, repeated, tag = "1")]
    pub file: Vec<FileDescriptorProto>,
}

/// One compiled `.proto` file.
#[derive(Clone, PartialEq, Message)]
pub struct FileDescriptorProto {
    /// Package such as `cosmos.bank.v1beta1`; empty for none.
    #[prost(string, tag = "2")]
    pub package: String,
    /// Top-level messages in declaration order.
    #[prost(message, repeated, tag = "4")]
    pub message_type: Vec<DescriptorProto>,
    /// Top-level enums in declaration order.
    #[prost(message, repeated, tag = "5")]
    pub enum_type: Vec<EnumDescriptorProto>,
}

/// A message type.
#[derive(Clone, PartialEq, Message)]
pub struct DescriptorProto {
    /// Name without package and without enclosing messages.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Fields in declaration order.
    #[prost(message, repeated, tag = "2")]
    pub field: Vec<FieldDescriptorProto>,
    /// Messages declared inside this one.
    #[prost(message, repeated, tag = "3")]
    pub nested_type: Vec<DescriptorProto>,
    /// Enums declared inside this message.
    #[prost(message, repeated, tag = "4")]
    pub enum_type: Vec<EnumDescriptorProto>,
    /// Options of the message.
    #[prost(message, optional, tag = "7")]
    pub options: Option<MessageOptions>,
}

/// Options of a message, extensions included.
#[derive(Clone, PartialEq, Message)]
pub struct MessageOptions {
    /// The message is the entry type of a `map` field.
    #[prost(bool, tag = "7")]
    pub map_entry: bool,
    /// `cosmos.msg.v1.signer`: names of the fields that contain the signers.
    #[prost(string, repeated, tag = "11110000")]
    pub signer: Vec<String>,
}

/// A field of a message.
#[derive(Clone, PartialEq, Message)]
pub struct FieldDescriptorProto {
    /// Original (`snake_case`) name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Field number.
    #[prost(int32, tag = "3")]
    pub number: i32,
    /// Cardinality.
    #[prost(enumeration = "FieldLabel", tag = "4")]
    pub label: i32,
    /// Type on the wire.
    #[prost(enumeration = "FieldType", tag = "5")]
    pub r#type: i32,
    /// Fully qualified name, leading dot included, of the message or enum type; empty for scalars.
    #[prost(string, tag = "6")]
    pub type_name: String,
    /// Options of the field.
    #[prost(message, optional, tag = "8")]
    pub options: Option<FieldOptions>,
    /// Index of the `oneof` that the field is a member of.
    #[prost(int32, optional, tag = "9")]
    pub oneof_index: Option<i32>,
    /// Declared `optional` in proto3; its `oneof` is then an artefact of the compiler.
    #[prost(bool, tag = "17")]
    pub proto3_optional: bool,
}

/// Options of a field: extensions only.
#[derive(Clone, PartialEq, Message)]
pub struct FieldOptions {
    /// `gogoproto.nullable`: `false` makes the Go field a value, which is printed even if it was never set.
    #[prost(bool, optional, tag = "65001")]
    pub nullable: Option<bool>,
    /// `gogoproto.customtype`: the Go type that holds a string or bytes field.
    #[prost(string, tag = "65003")]
    pub customtype: String,
    /// `gogoproto.casttype`: the Go type that a field is converted to.
    #[prost(string, tag = "65007")]
    pub casttype: String,
    /// `gogoproto.stdtime`: a Timestamp held as Go's `time.Time`.
    #[prost(bool, tag = "65010")]
    pub stdtime: bool,
    /// `gogoproto.stdduration`: a Duration held as Go's `time.Duration`.
    #[prost(bool, tag = "65011")]
    pub stdduration: bool,
}

/// An enum type.
#[derive(Clone, PartialEq, Message)]
pub struct EnumDescriptorProto {
    /// Name without package and without enclosing messages.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Values in declaration order; with aliases, the first name of a number is printed.
    #[prost(message, repeated, tag = "2")]
    pub value: Vec<EnumValueDescriptorProto>,
}

/// A value of an enum.
#[derive(Clone, PartialEq, Message)]
pub struct EnumValueDescriptorProto {
    /// Name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Number on the wire.
    #[prost(int32, tag = "2")]
    pub number: i32,
}

/// Cardinality of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum FieldLabel {
    /// At most one value.
    Optional = 1,
    /// Exactly one value (proto2).
    Required = 2,
    /// Any number of values; also `map` fields.
    Repeated = 3,
}

/// Type of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
#[expect(missing_docs, reason = "the names are those of the protobuf language")]
pub enum FieldType {
    Double = 1,
    Float = 2,
    Int64 = 3,
    Uint64 = 4,
    Int32 = 5,
    Fixed64 = 6,
    Fixed32 = 7,
    Bool = 8,
    String = 9,
    Group = 10,
    Message = 11,
    Bytes = 12,
    Uint32 = 13,
    Enum = 14,
    Sfixed32 = 15,
    Sfixed64 = 16,
    Sint32 = 17,
    Sint64 = 18,
}
