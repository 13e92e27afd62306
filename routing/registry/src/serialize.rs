//! Serde serializers for values that the fingerprint writes as text.

use std::fmt::Display;

use chain::U256;
use serde::{Serialize as _, Serializer};

/// Serializes a value by its `Display` form.
pub(crate) fn text<S: Serializer>(value: &impl Display, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Serializes an optional amount as a decimal string.
#[expect(clippy::ref_option, reason = "serde passes fields by reference")]
pub(crate) fn amount<S: Serializer>(value: &Option<U256>, serializer: S) -> Result<S::Ok, S::Error> {
    value.map(|amount| amount.to_string()).serialize(serializer)
}
