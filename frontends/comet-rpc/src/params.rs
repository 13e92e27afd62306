//! Parameters of calls, in the URI and in JSON, with the errors of CometBFT (`rpc/jsonrpc/server`).

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use query::comet::go_hex;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::rpc_error::RpcError;

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Bytes,
    Bool,
    /// A text of decimal digits.
    Integer,
    Text,
}

/// The value of a parameter; one that is absent is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Bytes(Vec<u8>),
    Bool(bool),
    Integer(Option<i64>),
    Text(String),
}

/// The names and types of the parameters of a method, in order.
pub(crate) type Params = [(&'static str, Type)];

/// The values of the parameters in the query string of a URI, whose texts `text` gives.
pub(crate) fn of_uri<'a>(
    expected: &Params,
    text: impl Fn(&str) -> Option<&'a str>,
) -> Result<Vec<Value>, RpcError> {
    let values =
        expected.iter().map(|(name, ty)| text(name).map_or_else(|| Ok(ty.absent()), |text| ty.of_uri(text)));
    values.collect::<Result<_, _>>().map_err(|reason| invalid("http", &reason))
}

/// The values of the parameters of a call: an object, a list, or none.
pub(crate) fn of_json(expected: &Params, params: Option<&str>) -> Result<Vec<Value>, RpcError> {
    let params = params.map_or("", str::trim);
    let invalid = |reason: String| invalid("json", &reason);
    let values: Vec<Option<&RawValue>> = match params.as_bytes().first() {
        None => vec![None; expected.len()],
        Some(_) if params == "null" => vec![None; expected.len()],
        Some(b'[') => {
            let list: Vec<&RawValue> =
                serde_json::from_str(params).map_err(|error| invalid(error.to_string()))?;
            if list.len() != expected.len() {
                let names: Vec<_> = expected.iter().map(|(name, _)| *name).collect();
                return Err(invalid(format!(
                    "expected {} parameters ([{}]), got {}",
                    names.len(),
                    names.join(" "),
                    list.len()
                )));
            }
            list.into_iter().map(Some).collect()
        }
        Some(b'{') => {
            let members: BTreeMap<String, &RawValue> =
                serde_json::from_str(params).map_err(|error| invalid(error.to_string()))?;
            expected.iter().map(|(name, _)| members.get(*name).copied()).collect()
        }
        Some(_) => return Err(invalid("unknown type for JSON params. Expected map or array".to_owned())),
    };
    let values = expected
        .iter()
        .zip(values)
        .map(|((_, ty), json)| json.map_or_else(|| Ok(ty.absent()), |json| ty.of_json(json.get())));
    values.collect::<Result<_, _>>().map_err(invalid)
}

fn invalid(form: &str, reason: &str) -> RpcError {
    RpcError::invalid_params(format!("error converting {form} params to arguments: {reason}"))
}

impl Type {
    fn absent(self) -> Value {
        match self {
            Self::Bytes => Value::Bytes(Vec::new()),
            Self::Bool => Value::Bool(false),
            Self::Integer => Value::Integer(None),
            Self::Text => Value::Text(String::new()),
        }
    }

    /// A number may be bare, bytes may be hex after `0x`, or a JSON text of themselves; all else is JSON.
    fn of_uri(self, text: &str) -> Result<Value, String> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if self == Self::Integer && !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return number(text);
        }
        let hex = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        match (self, hex) {
            (Self::Bytes, Some(hex)) => go_hex(hex).map(Value::Bytes),
            (Self::Text, Some(hex)) => {
                go_hex(hex).map(|bytes| Value::Text(String::from_utf8_lossy(&bytes).into_owned()))
            }
            (_, Some(_)) => Err(format!("got a hex string arg, but expected '{}'", self.name())),
            (Self::Bytes, None) if text.starts_with('"') => {
                self.parsed::<String>(text).map(|text| Value::Bytes(text.into_bytes()))
            }
            (_, None) => self.of_json(text),
        }
    }

    fn of_json(self, json: &str) -> Result<Value, String> {
        if json == "null" {
            return Ok(self.absent());
        }
        match self {
            Self::Bytes => {
                let text: String = self.parsed(json)?;
                STANDARD
                    .decode(text)
                    .map(Value::Bytes)
                    .map_err(|error| format!("illegal base64 data: {error}"))
            }
            Self::Bool => self.parsed(json).map(Value::Bool),
            Self::Text => self.parsed(json).map(Value::Text),
            Self::Integer => {
                let inner = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                number(
                    inner.ok_or_else(|| {
                        format!("invalid 64-bit integer encoding \"{json}\", expected string")
                    })?,
                )
            }
        }
    }

    fn parsed<T: DeserializeOwned>(self, json: &str) -> Result<T, String> {
        serde_json::from_str(json).map_err(|_| {
            let kind = match json.as_bytes().first() {
                Some(b'"') if is_json(json) => "string",
                Some(b'{') if is_json(json) => "object",
                Some(b'[') if is_json(json) => "array",
                Some(b't' | b'f') if is_json(json) => "bool",
                Some(_) if is_json(json) => "number",
                _ => return no_value(json),
            };
            format!("json: cannot unmarshal {kind} into Go value of type {}", self.name())
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bytes => "[]uint8",
            Self::Bool => "bool",
            Self::Integer => "int",
            Self::Text => "string",
        }
    }
}

/// A number in decimal digits, as Go's decoder of JSON reads one.
fn number(digits: &str) -> Result<Value, String> {
    digits.parse().map(|number| Value::Integer(Some(number))).map_err(|_| match digits.as_bytes().first() {
        Some(b'0'..=b'9' | b'-') => {
            format!("json: cannot unmarshal number {digits} into Go value of type int")
        }
        _ => no_value(digits),
    })
}

fn is_json(text: &str) -> bool {
    serde_json::from_str::<&RawValue>(text).is_ok()
}

/// The error for a text that is no JSON.
fn no_value(text: &str) -> String {
    match text.chars().next() {
        None => "unexpected end of JSON input".to_owned(),
        Some('\\') => r"invalid character '\\' looking for beginning of value".to_owned(),
        Some(character) => format!("invalid character '{character}' looking for beginning of value"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TX: &Params = &[("hash", Type::Bytes), ("prove", Type::Bool)];
    const SEARCH: &Params = &[("query", Type::Text), ("page", Type::Integer)];

    #[test]
    fn parameters_have_the_errors_of_a_node() {
        let uri = |text| Type::Integer.of_uri(text);
        assert_eq!(uri("7"), Ok(Value::Integer(Some(7))));
        assert_eq!(uri("\"-7\""), Ok(Value::Integer(Some(-7))));
        assert_eq!(
            uri("\"1.5\"").unwrap_err(),
            "json: cannot unmarshal number 1.5 into Go value of type int"
        );
        assert_eq!(
            Type::Integer.of_json("1").unwrap_err(),
            "invalid 64-bit integer encoding \"1\", expected string"
        );
        assert_eq!(
            Type::Integer.of_json(r#""\"x\"""#).unwrap_err(),
            r"invalid character '\\' looking for beginning of value"
        );
        assert_eq!(
            Type::Text.of_uri("message").unwrap_err(),
            "invalid character 'm' looking for beginning of value"
        );
        assert_eq!(Type::Bytes.of_uri("0xzz").unwrap_err(), "encoding/hex: invalid byte: U+007A 'z'");
        assert_eq!(Type::Bytes.of_uri("\"ab\""), Ok(Value::Bytes(b"ab".to_vec())));
        assert_eq!(Type::Bytes.of_json("\"q80=\""), Ok(Value::Bytes(vec![0xab, 0xcd])));
        assert_eq!(
            Type::Bool.of_uri("1").unwrap_err(),
            "json: cannot unmarshal number into Go value of type bool"
        );
    }

    #[test]
    fn a_list_has_all_parameters_and_an_object_some() {
        assert_eq!(of_json(TX, Some("{}")).unwrap(), [Value::Bytes(Vec::new()), Value::Bool(false)]);
        assert_eq!(of_json(TX, None).unwrap(), of_json(TX, Some("{\"other\":1}")).unwrap());
        assert!(of_json(SEARCH, Some(r#"["a.b='c'","1"]"#)).is_ok());
        assert!(of_json(SEARCH, Some(r#"["a.b='c'"]"#)).is_err());
        assert!(of_json(SEARCH, Some("1")).is_err());
    }
}
