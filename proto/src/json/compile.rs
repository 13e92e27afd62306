//! Turns a descriptor set into tables.
//!
//! The Go types behind a field decide its JSON, and gogoproto's options decide the Go types. Descriptors do not show
//! enums with a hand-written Go `String` method, so those are listed here.

use crate::descriptor::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FieldLabel, FieldOptions, FieldType,
    FileDescriptorSet,
};
use rustc_hash::FxHashMap;

use crate::json::table::{Absent, Enum, Field, Form, Kind, Message, Shape};

/// Enums with other names in JSON than in their descriptors: full name, names by number, name of all other numbers.
/// Source: `String` of `AccessType` in wasmd `x/wasm/types/params.go`.
type HandWritten = (&'static str, &'static [(i32, &'static str)], &'static str);
const HAND_WRITTEN: &[HandWritten] = &[(
    "cosmwasm.wasm.v1.AccessType",
    &[(1, "\"Nobody\""), (3, "\"Everybody\""), (4, "\"AnyOfAddresses\"")],
    "\"Unspecified\"",
)];

/// Compiles every message and enum of a set. Of two types with the same name the first counts.
pub(crate) fn compile(set: &FileDescriptorSet) -> (Vec<Message>, Vec<Enum>) {
    let mut found = Found::default();
    for file in &set.file {
        let scope = if file.package.is_empty() { String::new() } else { format!("{}.", file.package) };
        found.collect(&scope, &file.message_type, &file.enum_type);
    }
    let sources = std::mem::take(&mut found.sources);
    let mut messages: Vec<Message> =
        sources.iter().map(|(name, source)| found.message(name.clone(), source)).collect();
    messages.extend(found.missing.into_iter().map(missing));
    (messages, found.enums)
}

/// The types that the first pass over the set finds; the second pass refers to them.
#[derive(Default)]
struct Found<'a> {
    sources: Vec<(String, &'a DescriptorProto)>,
    /// Index by full name with a leading dot, and true for a map entry.
    messages: FxHashMap<String, (usize, bool)>,
    enums: Vec<Enum>,
    enum_names: FxHashMap<String, usize>,
    /// Names of types that fields refer to but the set lacks; their indices follow those of `sources`.
    missing: Vec<String>,
}

impl<'a> Found<'a> {
    fn collect(&mut self, scope: &str, messages: &'a [DescriptorProto], enums: &[EnumDescriptorProto]) {
        for source in enums {
            let name = format!(".{scope}{}", source.name);
            if !self.enum_names.contains_key(&name) {
                self.enums.push(enumeration(&name[1..], source));
                self.enum_names.insert(name, self.enums.len() - 1);
            }
        }
        for source in messages {
            let name = format!("{scope}{}", source.name);
            self.collect(&format!("{name}."), &source.nested_type, &source.enum_type);
            let is_entry = source.options.as_ref().is_some_and(|options| options.map_entry);
            let key = format!(".{name}");
            if !self.messages.contains_key(&key) {
                self.messages.insert(key, (self.sources.len(), is_entry));
                self.sources.push((name, source));
            }
        }
    }

    fn message(&mut self, name: String, source: &DescriptorProto) -> Message {
        let total = self.messages.len();
        let fields: Box<[Field]> = source.field.iter().filter_map(|field| self.field(field, total)).collect();
        let mut by_number: Vec<(u32, usize)> =
            fields.iter().enumerate().map(|(index, field)| (field.number, index)).collect();
        by_number.sort_unstable();
        let signers = source.options.as_ref().map_or_else(Vec::new, |options| options.signer.clone());
        Message {
            form: form(&name),
            name: name.into(),
            fields,
            by_number: by_number.into(),
            signers: signers.into(),
        }
    }

    /// Fields with a number that is invalid on the wire are left out.
    fn field(&mut self, source: &FieldDescriptorProto, total: usize) -> Option<Field> {
        let number = u32::try_from(source.number).ok()?;
        let standard = FieldOptions::default();
        let options = source.options.as_ref().unwrap_or(&standard);
        let (kind, is_entry) = self.kind(source, options, total);
        let shape = match source.label() {
            FieldLabel::Repeated if is_entry => Shape::Map,
            FieldLabel::Repeated => Shape::Many,
            FieldLabel::Optional | FieldLabel::Required => Shape::One,
        };
        let oneof = source.oneof_index.filter(|_| !source.proto3_optional);
        Some(Field {
            number,
            key: format!("\"{}\":", source.name).into(),
            kind,
            shape,
            absent: absent(source, options, kind, oneof.is_some()),
            oneof,
        })
    }

    fn kind(&mut self, source: &FieldDescriptorProto, options: &FieldOptions, total: usize) -> (Kind, bool) {
        let kind = match source.r#type() {
            FieldType::Message if options.stdtime => Kind::Time,
            FieldType::Message if options.stdduration => Kind::Span,
            FieldType::Message => {
                let (index, is_entry) = match self.messages.get(&source.type_name) {
                    Some(&found) => found,
                    None => (self.refer_to_missing(&source.type_name, total), false),
                };
                return (Kind::Message(index), is_entry);
            }
            FieldType::Enum => match self.enum_names.get(&source.type_name) {
                Some(&index) => Kind::Enum(index),
                None => Kind::Number(FieldType::Int32),
            },
            FieldType::String | FieldType::Bytes => text_kind(source.r#type(), options),
            FieldType::Group => Kind::Group,
            other => Kind::Number(other),
        };
        (kind, false)
    }

    fn refer_to_missing(&mut self, name: &str, total: usize) -> usize {
        let name = name.trim_start_matches('.');
        let position = self.missing.iter().position(|missing| missing == name).unwrap_or_else(|| {
            self.missing.push(name.to_owned());
            self.missing.len() - 1
        });
        total + position
    }
}

/// String and bytes fields by the Go type that holds them. The same Go type has several import paths.
fn text_kind(wire: FieldType, options: &FieldOptions) -> Kind {
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    match (last(&options.customtype).as_str(), last(&options.casttype).as_str()) {
        ("math.Int" | "types.Int", _) => Kind::Integer,
        ("math.LegacyDec" | "math.Dec" | "types.Dec", _) => Kind::Decimal,
        // The same name in cosmos/evm and in ethermint.
        ("EthereumTx", _) => Kind::EthereumTx,
        (_, "bytes.HexBytes") => Kind::Hex,
        (_, cast) if cast == "json.RawMessage" || cast.ends_with("RawContractMessage") => Kind::Json,
        _ if wire == FieldType::String => Kind::Text,
        _ => Kind::Bytes,
    }
}

fn absent(source: &FieldDescriptorProto, options: &FieldOptions, kind: Kind, in_oneof: bool) -> Absent {
    let nullable = options.nullable.unwrap_or(true);
    let is_pointer = match kind {
        Kind::Message(_) | Kind::Time | Kind::Span | Kind::Integer | Kind::Decimal => true,
        _ => !options.customtype.is_empty(),
    };
    if in_oneof {
        Absent::Omit
    } else if source.proto3_optional || (is_pointer && nullable) {
        Absent::Null
    } else {
        Absent::Zero
    }
}

fn form(name: &str) -> Form {
    match name.strip_prefix("google.protobuf.") {
        Some("Any") => Form::Any,
        Some("Timestamp") => Form::Timestamp,
        Some("Duration") => Form::Duration,
        Some("Value") => Form::Value,
        Some("Empty") => Form::WellKnownObject,
        Some(
            "DoubleValue" | "FloatValue" | "Int64Value" | "UInt64Value" | "Int32Value" | "UInt32Value"
            | "BoolValue" | "StringValue" | "BytesValue" | "Struct" | "ListValue",
        ) => Form::Transparent,
        _ => Form::Object,
    }
}

fn missing(name: String) -> Message {
    let (fields, by_number, signers) = Default::default();
    Message { name: name.into(), form: Form::Missing, fields, by_number, signers }
}

fn enumeration(name: &str, source: &EnumDescriptorProto) -> Enum {
    if name == "google.protobuf.NullValue" {
        return Enum { names: Box::default(), other: Some("null") };
    }
    if let Some((_, names, other)) = HAND_WRITTEN.iter().find(|entry| entry.0 == name) {
        let names = names.iter().map(|&(number, name)| (number, name.into())).collect();
        return Enum { names, other: Some(other) };
    }
    let mut names: Vec<(i32, Box<str>)> =
        source.value.iter().map(|value| (value.number, format!("\"{}\"", value.name).into())).collect();
    // The sort is stable, so of several names for one number the first declared one remains first.
    names.sort_by_key(|entry| entry.0);
    names.dedup_by_key(|entry| entry.0);
    Enum { names: names.into(), other: None }
}
