//! The types of one chain, compiled once, looked up by type URL.
//!
//! Type URLs are interpreted as by a Cosmos node: `/` and the full name, with an empty part before the slash.

use crate::descriptor::FileDescriptorSet;
use prost::Message as _;
use rustc_hash::FxHashMap;

use crate::json::Error;
use crate::json::compile::compile;
use crate::json::descriptor_patches::apply_patches;
use crate::json::table::{Enum, Form, Message};

/// The message and enum types of one chain's application.
#[derive(Debug)]
pub struct Registry {
    pub(crate) messages: Vec<Message>,
    pub(crate) enums: Vec<Enum>,
    names: FxHashMap<Box<str>, usize>,
    pub(crate) body: usize,
    pub(crate) auth_info: usize,
}

impl Registry {
    /// Compiles the bytes of a `FileDescriptorSet`: the value of `abci_query` for
    /// `/cosmos.reflection.v1.ReflectionService/FileDescriptors`, or the gRPC answer of the same call.
    ///
    /// Members that released chains print although their descriptors lack them are added (`descriptor_patches`). A type
    /// that a field refers to but the set lacks is an error only when such a field is printed. Errors:
    /// [`Error::Descriptors`], or [`Error::NotAnApplication`] if the transaction types are missing.
    pub fn from_descriptors(bytes: &[u8]) -> Result<Self, Error> {
        let mut set = FileDescriptorSet::decode(bytes)?;
        apply_patches(&mut set);
        let (messages, enums) = compile(&set);
        let names: FxHashMap<Box<str>, usize> =
            messages.iter().enumerate().map(|(index, message)| (message.name.clone(), index)).collect();
        let must_have = |name| names.get(name).copied().ok_or(Error::NotAnApplication { name });
        let body = must_have("cosmos.tx.v1beta1.TxBody")?;
        let auth_info = must_have("cosmos.tx.v1beta1.AuthInfo")?;
        Ok(Self { messages, enums, names, body, auth_info })
    }

    /// True if a message of this type can be printed.
    pub fn knows(&self, type_url: &str) -> bool {
        self.resolve(type_url).is_some()
    }

    /// Names of the fields that contain the signers of a message, from its `cosmos.msg.v1.signer` option; empty for a
    /// type without one and for an unknown type.
    pub fn signer_fields(&self, type_url: &str) -> &[String] {
        self.resolve(type_url).map_or(&[], |index| &self.messages[index].signers)
    }

    /// Index of the message type with this type URL.
    pub(crate) fn resolve(&self, type_url: &str) -> Option<usize> {
        self.named(type_url.strip_prefix('/')?)
    }

    /// Index of a message by full name.
    pub(crate) fn named(&self, full_name: &str) -> Option<usize> {
        let index = *self.names.get(full_name)?;
        (self.messages[index].form != Form::Missing).then_some(index)
    }
}
