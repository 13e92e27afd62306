//! The methods: one table, from which calls are dispatched.

use query::comet::{CometView, Error, Search};

use crate::params::{Params, Type, Value};

/// A method.
pub(crate) struct Method {
    /// As in `method`, and the path of `GET`.
    pub(crate) name: &'static str,
    /// The names and types of its parameters, in order.
    pub(crate) params: &'static Params,
    pub(crate) read: fn(&CometView<'_>, &[Value]) -> Result<Vec<u8>, Error>,
}

pub(crate) const TX: Method = Method {
    name: "tx",
    params: &[("hash", Type::Bytes), ("prove", Type::Bool)],
    read: |view, values| match values {
        [Value::Bytes(hash), Value::Bool(prove)] => view.tx(hash, *prove),
        _ => Err(arity()),
    },
};

pub(crate) const TX_SEARCH: Method = Method {
    name: "tx_search",
    params: &[
        ("query", Type::Text),
        ("prove", Type::Bool),
        ("page", Type::Integer),
        ("per_page", Type::Integer),
        ("order_by", Type::Text),
    ],
    read: |view, values| match values {
        [
            Value::Text(query),
            Value::Bool(prove),
            Value::Integer(page),
            Value::Integer(per_page),
            Value::Text(order_by),
        ] => view.tx_search(Search { query, prove: *prove, page: *page, per_page: *per_page, order_by }),
        _ => Err(arity()),
    },
};

pub(crate) const BLOCK_SEARCH: Method = Method {
    name: "block_search",
    params: &[
        ("query", Type::Text),
        ("page", Type::Integer),
        ("per_page", Type::Integer),
        ("order_by", Type::Text),
    ],
    read: |view, values| match values {
        [Value::Text(query), Value::Integer(page), Value::Integer(per_page), Value::Text(order_by)] => {
            view.block_search(Search { query, prove: false, page: *page, per_page: *per_page, order_by })
        }
        _ => Err(arity()),
    },
};

/// That the process answers.
pub(crate) const HEALTH: Method = Method { name: "health", params: &[], read: |_, _| Ok(b"{}".to_vec()) };

/// All methods.
pub(crate) const METHODS: [&Method; 4] = [&TX, &TX_SEARCH, &BLOCK_SEARCH, &HEALTH];

/// Methods of the same clients that do not follow from the index, each with the reason.
pub(crate) const UNSERVED: [(&str, &str); 3] = [
    (
        "status",
        "hashes of the application's state and the validator's key are not stored; `/status` of the JSON interface has the height",
    ),
    (
        "block",
        "headers, commits and evidence are not stored whole; `/cosmos/tx/v1beta1/txs/block/{height}` has the transactions",
    ),
    (
        "block_results",
        "hashes of the application's state and changes of validators are not stored; `tx_search` by tx.height has the results of transactions",
    ),
];

/// The method with this name.
pub(crate) fn find(name: &str) -> Option<&'static Method> {
    METHODS.into_iter().find(|method| method.name == name)
}

/// The values are of the types of `params`.
fn arity() -> Error {
    Error::Invalid("the parameters are not those of the method".to_owned())
}
