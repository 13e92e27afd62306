//! Serde of members that a message has in another form than JSON.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// JSON of free form as it is written.
pub(crate) fn text<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(own)
}

/// The values of a list as they are written.
pub(crate) fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    Ok(Vec::<Box<RawValue>>::deserialize(deserializer)?.into_iter().map(own).collect())
}

fn own(json: Box<RawValue>) -> String {
    Box::<str>::from(json).into_string()
}

/// True for a member that JSON lacks.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A list that JSON has as `null` while it is empty.
pub(crate) mod null_if_empty {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(list: &[String], serializer: S) -> Result<S::Ok, S::Error> {
        Some(list).filter(|list| !list.is_empty()).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
        Ok(Option::deserialize(deserializer)?.unwrap_or_default())
    }
}
