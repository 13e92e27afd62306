//! Operations that a client sends back: parsed leniently and compared with the current plan.

use serde_json::{Map, Value};

use crate::operation::{Operation, OperationKind};

/// An operation of a client is not what this service would have answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("operations[{operation}].{field} is `{given}`, which is not this route's: it is `{expected}`")]
pub struct Mismatch {
    /// Its position.
    pub operation: usize,
    /// For example `transfer.channel`; `kind` if it is another operation, or one too many or too few.
    pub field: String,
    /// As the client sent it.
    pub given: String,
    /// As it would be answered now.
    pub expected: String,
}

/// Checks that operations that a client echoes are those of a plan made now. What says where something goes has to be
/// the same: kinds, chains, channels, ports, bridges, denominations, contracts, endpoint ids. What a client left out,
/// and what changes from one quote to the next (amounts, fees, pictures), does not matter.
pub fn same_route(plan_operations: &[Operation], echoed: &[Operation]) -> Result<(), Mismatch> {
    for operation in 0..plan_operations.len().max(echoed.len()) {
        let (mine, theirs) = (plan_operations.get(operation), echoed.get(operation));
        let named =
            |side: Option<&Operation>| side.map_or("none", |operation| operation.kind.name()).to_owned();
        let compared = match (mine, theirs) {
            (Some(mine), Some(theirs)) => fields(&mine.kind, &theirs.kind),
            _ => None,
        };
        let Some(compared) = compared else {
            let (given, expected) = (named(theirs), named(mine));
            return Err(Mismatch { operation, field: "kind".to_owned(), given, expected });
        };
        for (field, expected, given) in compared {
            if !given.is_empty() && given != expected {
                let field = format!("{}.{field}", named(mine));
                return Err(Mismatch { operation, field, given, expected });
            }
        }
    }
    Ok(())
}

/// Name, mine, theirs.
type Compared = (&'static str, String, String);

/// Lists fields of both sides.
macro_rules! compared {
    ($mine:expr, $theirs:expr, $($field:ident),* $(,)?) => {
        Some(vec![$((stringify!($field), $mine.$field.to_string(), $theirs.$field.to_string())),*])
    };
}

/// Fields that must be equal; `None` for different kinds.
fn fields(mine: &OperationKind, theirs: &OperationKind) -> Option<Vec<Compared>> {
    use OperationKind::{BankSend, LayerZeroTransfer, OpInitTransfer, Swap, Transfer};
    match (mine, theirs) {
        (Transfer(mine), Transfer(theirs)) => {
            compared!(mine, theirs, port, channel, from_chain_id, to_chain_id, denom_in, denom_out, bridge_id)
        }
        (BankSend(mine), BankSend(theirs)) => compared!(mine, theirs, chain_id, denom),
        (Swap(mine), Swap(theirs)) => {
            let mut compared: Vec<Compared> =
                compared!(mine, theirs, from_chain_id, chain_id, denom_in, denom_out)?;
            let venue = |swap: &crate::operation::Swap| swap.swap_in.swap_venue.name.clone();
            compared.push(("swap_in.swap_venue.name", venue(mine), venue(theirs)));
            let steps = |swap: &crate::operation::Swap| {
                let steps = swap.swap_in.swap_operations.iter();
                steps
                    .map(|step| format!("{} {} {}", step.pool, step.denom_in, step.denom_out))
                    .collect::<Vec<_>>()
            };
            compared.push(("swap_in.swap_operations", steps(mine).join(", "), steps(theirs).join(", ")));
            Some(compared)
        }
        (OpInitTransfer(mine), OpInitTransfer(theirs)) => {
            compared!(
                mine,
                theirs,
                from_chain_id,
                to_chain_id,
                denom_in,
                denom_out,
                op_init_bridge_id,
                bridge_id
            )
        }
        (LayerZeroTransfer(mine), LayerZeroTransfer(theirs)) => {
            let mut compared: Vec<Compared> = compared!(
                mine,
                theirs,
                from_chain_id,
                to_chain_id,
                denom_in,
                denom_out,
                source_oft_contract_address,
                bridge_id
            )?;
            let id = |id: u32| if id == 0 { String::new() } else { id.to_string() };
            let (mine, theirs) = (mine.destination_endpoint_id, theirs.destination_endpoint_id);
            compared.push(("destination_endpoint_id", id(mine), id(theirs)));
            Some(compared)
        }
        _ => None,
    }
}

/// Why an operation cannot be read.
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
    /// A field is not what it must be.
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

impl TryFrom<Map<String, Value>> for Operation {
    type Error = BadOperation;

    fn try_from(mut object: Map<String, Value>) -> Result<Self, BadOperation> {
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
        let kind = serde_json::from_value(Value::Object(tagged)).map_err(|why| bad(why.to_string()))?;
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
