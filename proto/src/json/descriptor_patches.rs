//! Patches of descriptors: fields that a chain prints but that its descriptors lack.
//!
//! A chain serves descriptors from two places of its source: those next to its Go types, and a second, generated copy
//! (`api/`), which takes precedence where it exists. While the copy is outdated, the node prints members that its own
//! descriptors lack. An entry here needs a recording or the chain's source as proof; a field in the descriptors is
//! never changed, so an entry has no effect once the copy is regenerated.
//!
//! minievm: the copy of April 2025 was served until March 2026, and lacks the later additions to
//! `proto/minievm/evm/v1`. `CallAuthorization` was the first of these additions, so its presence in a set distinguishes
//! such chains from older ones. Not distinguished: 1.1.9 to 1.1.15, which have no `auth_list` yet.

use crate::descriptor::{DescriptorProto, FieldDescriptorProto, FieldLabel, FieldOptions, FieldType};
use crate::descriptor::{FileDescriptorProto, FileDescriptorSet};

const MINIEVM: &str = "minievm.evm.v1";
const MINIEVM_MARK: &str = "CallAuthorization";

/// Adds the fields that the set lacks.
pub(crate) fn apply_patches(set: &mut FileDescriptorSet) {
    let in_package = |file: &&mut FileDescriptorProto| file.package == MINIEVM;
    let has = |set: &FileDescriptorSet, name: &str| {
        let files = set.file.iter().filter(|file| file.package == MINIEVM);
        files.flat_map(|file| &file.message_type).any(|message| message.name == name)
    };
    if !has(set, MINIEVM_MARK) {
        return;
    }
    for (owner, field, needed) in minievm() {
        let mut messages = set.file.iter_mut().filter(in_package).flat_map(|file| &mut file.message_type);
        let Some(message) = messages.find(|message| message.name == owner) else { continue };
        if message.field.iter().any(|other| other.number == field.number || other.name == field.name) {
            continue;
        }
        message.field.push(field);
        if !has(set, &needed.name)
            && let Some(file) = set.file.iter_mut().find(|file| file.package == MINIEVM)
        {
            file.message_type.push(needed);
        }
    }
}

/// A message, the field that it lacks, and a type that must be in the set (minievm v1.2.18,
/// `proto/minievm/evm/v1/tx.proto` and `types.proto`).
fn minievm() -> [(&'static str, FieldDescriptorProto, DescriptorProto); 2] {
    let of_value = || FieldOptions { nullable: Some(false), ..FieldOptions::default() };
    let integer = FieldOptions { customtype: "cosmossdk.io/math.Int".to_owned(), ..of_value() };
    let authorization = vec![
        field("chain_id", 1, FieldType::String),
        field("address", 2, FieldType::String),
        field("nonce", 3, FieldType::Uint64),
        field("signature", 4, FieldType::Bytes),
    ];
    let enforcement = vec![
        FieldDescriptorProto { options: Some(integer), ..field("max_gas_fee_cap", 1, FieldType::String) },
        field("max_gas_limit", 2, FieldType::Uint64),
        FieldDescriptorProto {
            label: FieldLabel::Repeated.into(),
            ..field("unlimited_gas_senders", 3, FieldType::String)
        },
    ];
    let auth_list = FieldDescriptorProto {
        label: FieldLabel::Repeated.into(),
        type_name: format!(".{MINIEVM}.SetCodeAuthorization"),
        options: Some(of_value()),
        ..field("auth_list", 6, FieldType::Message)
    };
    let gas_enforcement = FieldDescriptorProto {
        type_name: format!(".{MINIEVM}.GasEnforcement"),
        ..field("gas_enforcement", 8, FieldType::Message)
    };
    [
        ("MsgCall", auth_list, message("SetCodeAuthorization", authorization)),
        ("Params", gas_enforcement, message("GasEnforcement", enforcement)),
    ]
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto { name: name.to_owned(), field, ..DescriptorProto::default() }
}

fn field(name: &str, number: i32, kind: FieldType) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: name.to_owned(),
        number,
        label: FieldLabel::Optional.into(),
        r#type: kind.into(),
        ..FieldDescriptorProto::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{MINIEVM, MINIEVM_MARK, apply_patches, field, message};
    use crate::descriptor::{DescriptorProto, FieldType, FileDescriptorProto, FileDescriptorSet};

    fn set(messages: Vec<DescriptorProto>) -> FileDescriptorSet {
        let package = MINIEVM.to_owned();
        let file = FileDescriptorProto { package, message_type: messages, ..Default::default() };
        FileDescriptorSet { file: vec![file] }
    }

    #[test]
    fn a_set_that_lags_behind_its_chain_gets_the_field_and_its_type() {
        let mut lagging = set(vec![message("MsgCall", vec![]), message(MINIEVM_MARK, vec![])]);
        apply_patches(&mut lagging);
        let messages = &lagging.file[0].message_type;
        assert_eq!(messages[0].field[0].name, "auth_list");
        assert_eq!(messages[2].name, "SetCodeAuthorization");
        assert_eq!(messages.len(), 3, "a message that is not there is not amended");
    }

    #[test]
    fn a_set_that_has_the_field_or_is_of_an_older_chain_is_unchanged() {
        let caught_up = message("MsgCall", vec![field("auth_list", 6, FieldType::Message)]);
        for messages in [vec![caught_up, message(MINIEVM_MARK, vec![])], vec![message("MsgCall", vec![])]] {
            let mut amended = set(messages.clone());
            apply_patches(&mut amended);
            assert_eq!(amended, set(messages));
        }
    }
}
