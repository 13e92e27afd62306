//! Builds descriptor sets and wire bytes for rules that no recorded transaction shows.

use prost::Message as _;
use prost::encoding::{WireType, encode_key, encode_varint};
use proto::descriptor::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto, FieldLabel,
    FieldOptions, FieldType, FileDescriptorProto, FileDescriptorSet, MessageOptions,
};
use proto::json::{Error, Registry, write_message};

/// A registry of package `t` with these messages and enums, plus the types that every application has.
pub(crate) fn registry(messages: Vec<DescriptorProto>, enums: Vec<EnumDescriptorProto>) -> Registry {
    let file = |package: &str, message_type, enum_type| FileDescriptorProto {
        package: package.to_owned(),
        message_type,
        enum_type,
    };
    let google = vec![
        message("Any", vec![field("type_url", 1, FieldType::String), field("value", 2, FieldType::Bytes)]),
        message("Timestamp", vec![field("seconds", 1, FieldType::Int64)]),
        message("Duration", vec![field("seconds", 1, FieldType::Int64)]),
        message("Empty", vec![]),
        message("StringValue", vec![field("value", 1, FieldType::String)]),
    ];
    let tx = vec![message("TxBody", vec![list(any("messages", 1))]), message("AuthInfo", vec![])];
    let set = FileDescriptorSet {
        file: vec![
            file("google.protobuf", google, vec![]),
            file("cosmos.tx.v1beta1", tx, vec![]),
            file("t", messages, enums),
        ],
    };
    Registry::from_descriptors(&set.encode_to_vec()).unwrap()
}

pub(crate) fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: name.to_owned(), field, ..Default::default() }
}

pub(crate) fn field(name: &str, number: i32, kind: FieldType) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: name.to_owned(),
        number,
        label: FieldLabel::Optional.into(),
        r#type: kind.into(),
        ..Default::default()
    }
}

pub(crate) fn of(name: &str, number: i32, type_name: &str) -> FieldDescriptorProto {
    FieldDescriptorProto { type_name: type_name.to_owned(), ..field(name, number, FieldType::Message) }
}

pub(crate) fn any(name: &str, number: i32) -> FieldDescriptorProto {
    of(name, number, ".google.protobuf.Any")
}

pub(crate) fn list(field: FieldDescriptorProto) -> FieldDescriptorProto {
    FieldDescriptorProto { label: FieldLabel::Repeated.into(), ..field }
}

pub(crate) fn with(
    field: FieldDescriptorProto,
    change: impl FnOnce(&mut FieldOptions),
) -> FieldDescriptorProto {
    let mut options = field.options.clone().unwrap_or_default();
    change(&mut options);
    FieldDescriptorProto { options: Some(options), ..field }
}

pub(crate) fn not_null(field: FieldDescriptorProto) -> FieldDescriptorProto {
    with(field, |options| options.nullable = Some(false))
}

pub(crate) fn custom(field: FieldDescriptorProto, go_type: &str) -> FieldDescriptorProto {
    with(field, |options| go_type.clone_into(&mut options.customtype))
}

pub(crate) fn cast(field: FieldDescriptorProto, go_type: &str) -> FieldDescriptorProto {
    with(field, |options| go_type.clone_into(&mut options.casttype))
}

pub(crate) fn in_oneof(field: FieldDescriptorProto) -> FieldDescriptorProto {
    FieldDescriptorProto { oneof_index: Some(0), ..field }
}

/// A message `name` with a map field `map` of number 1 and its entry type inside.
pub(crate) fn with_map(name: &str, key: FieldType, value: FieldDescriptorProto) -> DescriptorProto {
    let entry = DescriptorProto {
        options: Some(MessageOptions { map_entry: true, signer: vec![] }),
        ..message("MapEntry", vec![field("key", 1, key), value])
    };
    DescriptorProto {
        nested_type: vec![entry],
        ..message(name, vec![list(of("map", 1, &format!(".t.{name}.MapEntry")))])
    }
}

pub(crate) fn enumeration(name: &str, values: &[(&str, i32)]) -> EnumDescriptorProto {
    let value = values
        .iter()
        .map(|&(name, number)| EnumValueDescriptorProto { name: name.to_owned(), number })
        .collect();
    EnumDescriptorProto { name: name.to_owned(), value }
}

/// Wire bytes of a number.
pub(crate) fn num(field: u32, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_key(field, WireType::Varint, &mut bytes);
    encode_varint(value, &mut bytes);
    bytes
}

/// Wire bytes of a string, bytes or message.
pub(crate) fn len(field: u32, value: impl AsRef<[u8]>) -> Vec<u8> {
    let value = value.as_ref();
    let mut bytes = Vec::new();
    encode_key(field, WireType::LengthDelimited, &mut bytes);
    encode_varint(u64::try_from(value.len()).unwrap(), &mut bytes);
    bytes.extend_from_slice(value);
    bytes
}

/// The JSON of message `t.M`.
pub(crate) fn json(registry: &Registry, parts: &[Vec<u8>]) -> Result<String, Error> {
    let mut out = b"#".to_vec();
    let result = write_message(registry, "t.M", &parts.concat(), &mut out);
    if result.is_err() {
        assert_eq!(out, b"#", "an error leaves the output as it was");
    }
    result.map(|()| String::from_utf8(out[1..].to_vec()).unwrap())
}
