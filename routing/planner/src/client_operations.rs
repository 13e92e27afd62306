//! Lenient deserialization of the operations that a client sends back, and their comparison with the current plan.

use serde_json::{Map, Value};

use crate::operation::{Operation, OperationKind};

/// An operation of a client differs from that of the current plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operations[{operation}].{field} is `{given}`, which is not this route's: it is `{expected}`")]
pub struct Mismatch {
    /// Its position.
    pub operation: usize,
    /// For example `transfer.channel`; `kind` if the kind or the number of operations differs.
    pub field: String,
    /// As the client sent it.
    pub given: String,
    /// As in the current plan.
    pub expected: String,
}

/// Members of operations that determine the route. Amounts, fees and pictures may change from one quote to the next.
const ROUTE_FIELDS: [&str; 18] = [
    "port",
    "channel",
    "from_chain_id",
    "to_chain_id",
    "chain_id",
    "denom",
    "denom_in",
    "denom_out",
    "op_init_bridge_id",
    "source_oft_contract_address",
    "bridge_id",
    "destination_endpoint_id",
    "swap_in.swap_venue.name",
    "swap_in.swap_operations",
    "swap_out.swap_venue.name",
    "swap_out.swap_operations",
    "smart_swap_in.swap_venue.name",
    "smart_swap_in.swap_routes",
];

/// Compares the operations that a client sends back with those of the current plan: the kinds and `ROUTE_FIELDS`
/// must be equal. Fields that the client left out are ignored.
pub fn same_route(plan_operations: &[Operation], echoed: &[Operation]) -> Result<(), Mismatch> {
    for operation in 0..plan_operations.len().max(echoed.len()) {
        let (mine, theirs) = (plan_operations.get(operation), echoed.get(operation));
        let kind =
            |side: Option<&Operation>| side.map_or("none", |operation| operation.kind.name()).to_owned();
        let (expected, given) = (kind(mine), kind(theirs));
        if expected != given {
            return Err(Mismatch { operation, field: "kind".to_owned(), given, expected });
        }
        let (mine, theirs) = (body(mine), body(theirs));
        for field in ROUTE_FIELDS {
            let (expected, given) = (member(&mine, field), member(&theirs, field));
            if !given.is_empty() && given != expected {
                let field = format!("{}.{field}", kind(plan_operations.get(operation)));
                return Err(Mismatch { operation, field, given, expected });
            }
        }
    }
    Ok(())
}

/// JSON of an operation, without its kind.
fn body(operation: Option<&Operation>) -> Value {
    let tagged = operation.and_then(|operation| serde_json::to_value(&operation.kind).ok());
    let Some(Value::Object(tagged)) = tagged else { return Value::Null };
    tagged.into_iter().next().map(|(_, body)| body).unwrap_or_default()
}

/// Text of a member; empty if the member is missing or was left out.
fn member(body: &Value, field: &str) -> String {
    match field.split('.').fold(body, |value, key| &value[key]) {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.as_u64() != Some(0) => number.to_string(),
        Value::Array(steps) => {
            let keys = ["swap_operations", "pool", "denom_in", "denom_out"];
            let step = |step| keys.map(|key| member(step, key)).join(" ");
            steps.iter().map(step).map(|step| step.trim().to_owned()).collect::<Vec<_>>().join(", ")
        }
        _ => String::new(),
    }
}

/// Reason why an operation cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadOperation {
    /// None of the kinds that routes of this service are made of.
    #[error(
        "operation `{0}` is none of this service's: transfer, bank_send, swap, op_init_transfer, layer_zero_transfer"
    )]
    Unknown(String),
    /// Not exactly one kind.
    #[error("an operation has exactly one kind, this one has {0}")]
    Kinds(usize),
    /// A field is invalid.
    #[error("operation `{kind}`: {why}")]
    Field {
        /// The kind.
        kind: String,
        /// Reason.
        why: String,
    },
}

/// Members next to the kind.
const BESIDE: [&str; 3] = ["tx_index", "amount_in", "amount_out"];
/// The kinds that can be read.
const KINDS: [&str; 5] = ["transfer", "bank_send", "swap", "op_init_transfer", "layer_zero_transfer"];

/// Other kinds of Skip's interface.
const OTHER_KINDS: [&str; 8] = [
    "axelar_transfer",
    "cctp_transfer",
    "cctp_transfer_v2",
    "eureka_transfer",
    "evm_swap",
    "go_fast_transfer",
    "hyperlane_transfer",
    "stargate_transfer",
];

impl TryFrom<Map<String, Value>> for Operation {
    type Error = BadOperation;

    fn try_from(mut object: Map<String, Value>) -> Result<Self, BadOperation> {
        // A client may name the kinds that an operation is not of, too.
        let is_kind = |key: &str| KINDS.contains(&key) || OTHER_KINDS.contains(&key);
        object.retain(|key, value| !(value.is_null() && is_kind(key)));
        let kinds: Vec<String> =
            object.keys().filter(|key| !BESIDE.contains(&key.as_str())).map(ToOwned::to_owned).collect();
        if let Some(unknown) = kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
            return Err(BadOperation::Unknown(unknown.clone()));
        }
        let [kind] = kinds.as_slice() else { return Err(BadOperation::Kinds(kinds.len())) };
        let bad = |why: String| BadOperation::Field { kind: kind.clone(), why };
        let mut body = object.remove(kind).unwrap_or_default();
        if let Some(fields) = body.as_object_mut() {
            rename_legacy_fields(fields);
        }
        let tagged = Map::from_iter([(kind.clone(), body)]);
        let kind: OperationKind =
            serde_json::from_value(Value::Object(tagged)).map_err(|why| bad(why.to_string()))?;
        if let OperationKind::Swap(swap) = &kind {
            swap.check().map_err(|why| bad(why.to_owned()))?;
        }
        let tx_index = match object.get("tx_index") {
            None | Some(Value::Null) => Some(0),
            Some(index) => index.as_u64().and_then(|index| usize::try_from(index).ok()),
        };
        let tx_index = tx_index.ok_or_else(|| bad("tx_index is not a small number".to_owned()))?;
        let amount = |name: &str| match object.get(name) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(bad(format!("{name} is {other} and not a text"))),
        };
        Ok(Self { kind, tx_index, amount_in: amount("amount_in")?, amount_out: amount("amount_out")? })
    }
}

/// Renames legacy fields and drops `null` fields.
fn rename_legacy_fields(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| !value.is_null());
    for (old, new) in [("dest_denom", "denom_out"), ("chain_id", "from_chain_id")] {
        if let (Some(value), false) = (fields.get(old).cloned(), fields.contains_key(new)) {
            fields.insert(new.to_owned(), value);
        }
    }
}
