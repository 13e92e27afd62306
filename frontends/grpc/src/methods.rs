//! The RPCs of all services, from their descriptors.

use std::collections::HashMap;
use std::sync::Arc;

use prost::{DecodeError, Message as _};
use prost_types::FileDescriptorSet;

/// The RPCs by name (`package.Service/Method`).
pub(crate) struct Methods(HashMap<Arc<str>, IsStream>);

/// Whether the response is a stream of messages.
type IsStream = bool;

impl Methods {
    /// The RPCs in the encoded `FileDescriptorSet`s.
    pub(crate) fn from_descriptors(descriptors: &[&[u8]]) -> Result<Self, DecodeError> {
        let mut methods = HashMap::new();
        for descriptors in descriptors {
            for file in FileDescriptorSet::decode(*descriptors)?.file {
                for service in &file.service {
                    methods.extend(service.method.iter().map(|method| {
                        let name = format!("{}.{}/{}", file.package(), service.name(), method.name());
                        (name.into(), method.server_streaming())
                    }));
                }
            }
        }
        Ok(Self(methods))
    }

    /// The name of the RPC of a path; `None` for an unknown one.
    pub(crate) fn name(&self, path: &str) -> Option<Arc<str>> {
        self.0.get_key_value(name_in(path)).map(|(name, _)| Arc::clone(name))
    }

    /// True if the RPC of a path is a stream.
    pub(crate) fn is_stream(&self, path: &str) -> bool {
        self.0.get(name_in(path)).copied().unwrap_or_default()
    }
}

fn name_in(path: &str) -> &str {
    path.strip_prefix('/').unwrap_or(path)
}
