//! Parameters of calls, with the errors of Go's JSON decoder: clients match some of them, and the others name the fault.
//!
//! Source: positional arguments of go-ethereum's `rpc/json.go`.

use serde_json::value::RawValue;

use crate::go_json::{self, Block};
use crate::log_query::LogQuery;
use crate::rpc_error::{INVALID_PARAMS, RpcError};

/// The type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    /// 32 bytes in hex.
    Hash,
    /// The same with or without `0x`.
    CosmosHash,
    /// A height or a tag.
    Block,
    /// The same, or the hash of a block, or an object with either.
    BlockOrHash,
    /// `true` or `false`.
    Bool,
    /// The index of a transaction.
    Index,
    /// Bytes in hex.
    Bytes,
    /// The object of `eth_getLogs`.
    LogQuery,
    /// 20 bytes in hex.
    Address,
    /// A number of JSON, or a quantity in hex.
    Number,
    /// A height as a number of JSON, or [`Self::BlockOrHash`].
    AnyBlock,
    /// The same, or nothing for the last block.
    AnyBlockOrNone,
    /// The id or name of a subscription or filter.
    Id,
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Hash([u8; 32]),
    Block(Block),
    Bool(bool),
    Index(u64),
    Bytes(Vec<u8>),
    LogQuery(Box<LogQuery>),
    Address([u8; 20]),
    Text(String),
}

/// Reads positional parameters.
///
/// # Errors
/// -32602 with the text of go-ethereum.
pub(crate) fn read(params: Option<&str>, types: &[Type]) -> Result<Vec<Value>, RpcError> {
    typed(&list(params)?, types)
}

/// The JSON of each parameter.
pub(crate) fn list(params: Option<&str>) -> Result<Vec<&RawValue>, RpcError> {
    let invalid = || RpcError::new(INVALID_PARAMS, "non-array args");
    let params = params.map_or("", str::trim);
    match params.as_bytes().first() {
        None => Ok(Vec::new()),
        Some(_) if params == "null" => Ok(Vec::new()),
        Some(b'[') => serde_json::from_str(params).map_err(|_| invalid()),
        Some(_) => Err(invalid()),
    }
}

/// The values of parameters.
pub(crate) fn typed(list: &[&RawValue], types: &[Type]) -> Result<Vec<Value>, RpcError> {
    let invalid = |message: String| RpcError::new(INVALID_PARAMS, message);
    let mut values = Vec::with_capacity(types.len());
    for (place, json) in list.iter().enumerate() {
        let Some(ty) = types.get(place) else {
            return Err(invalid(format!("too many arguments, want at most {}", types.len())));
        };
        let value = ty.read(json.get());
        values.push(value.map_err(|reason| invalid(format!("invalid argument {place}: {reason}")))?);
    }
    while let Some(Type::AnyBlockOrNone) = types.get(values.len()) {
        values.push(Value::Block(Block::Head));
    }
    if values.len() < types.len() {
        return Err(invalid(format!("missing value for required argument {}", values.len())));
    }
    Ok(values)
}

impl Type {
    fn read(self, json: &str) -> Result<Value, String> {
        match self {
            Self::Hash => go_json::hash(json, "Go value of type common.Hash").map(Value::Hash),
            // Of no transaction, as a node reads it.
            Self::CosmosHash if json == "null" => Ok(Value::Hash([0; 32])),
            Self::CosmosHash => go_json::cosmos_hash(json).map(Value::Hash),
            Self::Block => go_json::block(json).map(Value::Block),
            Self::BlockOrHash => go_json::block_or_hash(json).map(Value::Block),
            Self::Bool => match json {
                "true" | "false" | "null" => Ok(Value::Bool(json == "true")),
                _ => Err(format!(
                    "json: cannot unmarshal {} into Go value of type bool",
                    go_json::go_type(json)
                )),
            },
            Self::Index => go_json::index(json).map(Value::Index),
            Self::Bytes => go_json::bytes_of(json).map(Value::Bytes),
            Self::Address => go_json::address(json).map(Value::Address),
            Self::Number => go_json::any_number(json).map(Value::Index),
            Self::AnyBlockOrNone if json == "null" => Ok(Value::Block(Block::Head)),
            Self::AnyBlock | Self::AnyBlockOrNone => match json.parse() {
                Ok(number) => Ok(Value::Block(Block::Number(number))),
                Err(_) => go_json::block_or_hash(json).map(Value::Block),
            },
            Self::Id => serde_json::from_str(json).map(Value::Text).map_err(|_| {
                format!("json: cannot unmarshal {} into Go value of type rpc.ID", go_json::go_type(json))
            }),
            Self::LogQuery => LogQuery::read(json).map(|query| Value::LogQuery(Box::new(query))),
        }
    }
}
