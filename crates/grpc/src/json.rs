//! Members of free form: JSON kept as text.

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The value as it is written.
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
