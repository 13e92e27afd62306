//! Texts of JSON as Go's decoders read them, with their errors (go-ethereum `common/hexutil`, `rpc/types.go`).

use std::borrow::Cow;

use serde::Deserialize as _;
use serde_json::Value as Json;

/// A block that a client names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Block {
    /// The last one: what all tags mean, `earliest` included, because the node's index has no mempool and no finality.
    Head,
    /// A height.
    Number(u64),
    /// The hash of its EVM header.
    Hash([u8; 32]),
}

/// What Go calls the type of a JSON text.
pub(crate) fn go_type(json: &str) -> &'static str {
    match json.as_bytes().first() {
        Some(b'"') => "string",
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b't' | b'f') => "bool",
        _ => "number",
    }
}

/// The text of a JSON string; `None` for other JSON. Go's `hexutil` reads it without escapes.
fn quoted(json: &str) -> Option<&str> {
    json.strip_prefix('"')?.strip_suffix('"')
}

/// The digits of a text with a prefix: an even number of them.
fn even_digits(text: &str) -> Result<&str, &'static str> {
    if text.is_empty() {
        return Ok("");
    }
    let digits = without_prefix(text).ok_or("hex string without 0x prefix")?;
    if digits.len().is_multiple_of(2) { Ok(digits) } else { Err("hex string of odd length") }
}

fn without_prefix(text: &str) -> Option<&str> {
    text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))
}

const BAD_DIGIT: &str = "invalid hex string";

/// A hash in JSON; `place` is where Go's decoder would put it.
pub(crate) fn hash(json: &str, place: &str) -> Result<[u8; 32], String> {
    let wrapped = |reason: &str| format!("json: cannot unmarshal {reason} into {place}");
    let text = quoted(json).ok_or_else(|| wrapped("non-string"))?;
    hash_of_digits(even_digits(text).map_err(wrapped)?, "common.Hash")
        .map_err(|error| if error == BAD_DIGIT { wrapped(&error) } else { error })
}

fn hash_of_digits(digits: &str, name: &str) -> Result<[u8; 32], String> {
    let mut hash = [0; 32];
    if digits.len() != 64 {
        return Err(format!("hex string has length {}, want 64 for {name}", digits.len()));
    }
    hex::decode_to_slice(digits, &mut hash).map_err(|_| BAD_DIGIT.to_owned())?;
    Ok(hash)
}

/// minievm `jsonrpc/types`: the hash of a Cosmos transaction.
pub(crate) fn cosmos_hash(json: &str) -> Result<[u8; 32], String> {
    let place = "Go value of type *common.UnprefixedHash";
    let text =
        quoted(json).ok_or_else(|| format!("json: cannot unmarshal {} into {place}", go_type(json)))?;
    let digits = without_prefix(text).unwrap_or(text);
    if !digits.len().is_multiple_of(2) {
        return Err("hex string of odd length".to_owned());
    }
    hash_of_digits(digits, "UnprefixedHash")
}

/// A number in a text: `hexutil.DecodeUint64`.
fn number(text: &str) -> Result<u64, Cow<'static, str>> {
    if text.is_empty() {
        return Err("empty hex string".into());
    }
    let digits = without_prefix(text).ok_or("hex string without 0x prefix")?;
    match digits {
        "" => Err("hex string \"0x\"".into()),
        _ if digits.len() > 1 && digits.starts_with('0') => Err("hex number with leading zero digits".into()),
        _ if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) => Err(BAD_DIGIT.into()),
        _ => u64::from_str_radix(digits, 16).map_err(|_| "hex number > 64 bits".into()),
    }
}

/// An address in JSON.
pub(crate) fn address(json: &str) -> Result<[u8; 20], String> {
    let wrapped =
        |reason: &str| format!("json: cannot unmarshal {reason} into Go value of type common.Address");
    let text = quoted(json).ok_or_else(|| wrapped("non-string"))?;
    let (digits, mut address) = (even_digits(text).map_err(wrapped)?, [0; 20]);
    if digits.len() != 40 {
        return Err(format!("hex string has length {}, want 40 for common.Address", digits.len()));
    }
    hex::decode_to_slice(digits, &mut address).map_err(|_| wrapped(BAD_DIGIT))?;
    Ok(address)
}

/// A number of JSON, or a text of one in hex.
pub(crate) fn any_number(json: &str) -> Result<u64, String> {
    match quoted(json) {
        Some(text) => number(text).map_err(Cow::into_owned),
        None => json
            .parse()
            .map_err(|_| format!("json: cannot unmarshal {} into Go value of type uint64", go_type(json))),
    }
}

/// A block by height or tag, in JSON or a text of it.
pub(crate) fn block(json: &str) -> Result<Block, String> {
    let text = json.trim();
    let text = quoted(text).unwrap_or(text);
    tag_or_number(text, "block number larger than int64")
}

fn tag_or_number(text: &str, too_large: &str) -> Result<Block, String> {
    match text {
        "latest" | "pending" | "safe" | "finalized" | "earliest" => Ok(Block::Head),
        _ => match number(text)? {
            number if i64::try_from(number).is_err() => Err(too_large.to_owned()),
            number => Ok(Block::Number(number)),
        },
    }
}

pub(crate) fn block_or_hash(json: &str) -> Result<Block, String> {
    if (json.starts_with('{') || json == "null")
        && let Some(block) = block_object(json)?
    {
        return Ok(block);
    }
    let text = serde_json::from_str::<String>(json)
        .map_err(|_| format!("json: cannot unmarshal {} into Go value of type string", go_type(json)))?;
    if text.len() == 66 {
        let digits = without_prefix(&text).ok_or("hex string without 0x prefix")?;
        return hash_of_digits(digits, "common.Hash").map(Block::Hash);
    }
    tag_or_number(&text, "blocknumber too high")
}

/// A block in an object; `None` if a member is malformed. An object without either member is block 0.
fn block_object(json: &str) -> Result<Option<Block>, String> {
    let Ok(members) =
        <Option<serde_json::Map<String, Json>>>::deserialize(&mut serde_json::Deserializer::from_str(json))
    else {
        return Ok(None);
    };
    let members = members.unwrap_or_default();
    let member = |name: &str| {
        let found = members.iter().rfind(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_string()).filter(|json| json != "null")
    };
    let canonical = member("requireCanonical").is_none_or(|json| matches!(&*json, "true" | "false"));
    let (number, hash_json) = (member("blockNumber"), member("blockHash"));
    let number = number.map(|json| block(&json)).transpose();
    let hash = hash_json.map(|json| hash(&json, "")).transpose();
    match (number, hash) {
        _ if !canonical => Ok(None),
        (Ok(Some(_)), Ok(Some(_))) => {
            Err("cannot specify both BlockHash and BlockNumber, choose one or the other".to_owned())
        }
        (Ok(Some(block)), Ok(None)) => Ok(Some(block)),
        (Ok(None), Ok(Some(hash))) => Ok(Some(Block::Hash(hash))),
        (Ok(None), Ok(None)) => Ok(Some(Block::Number(0))),
        _ => Ok(None),
    }
}

pub(crate) fn index(json: &str) -> Result<u64, String> {
    let wrapped =
        |reason: &str| format!("json: cannot unmarshal {reason} into Go value of type hexutil.Uint");
    match quoted(json) {
        None => Err(wrapped("non-string")),
        Some("") => Ok(0),
        Some(text) => number(text).map_err(|reason| wrapped(&reason)),
    }
}

pub(crate) fn bytes_of(json: &str) -> Result<Vec<u8>, String> {
    let wrapped =
        |reason: &str| format!("json: cannot unmarshal {reason} into Go value of type hexutil.Bytes");
    let text = quoted(json).ok_or_else(|| wrapped("non-string"))?;
    let digits = even_digits(text).map_err(wrapped)?;
    hex::decode(digits).map_err(|_| wrapped(BAD_DIGIT))
}

/// Bytes in a text: `hexutil.Decode`.
pub(crate) fn bytes(text: &str) -> Result<Vec<u8>, &'static str> {
    if text.is_empty() {
        return Err("empty hex string");
    }
    hex::decode(even_digits(text)?).map_err(|_| BAD_DIGIT)
}
