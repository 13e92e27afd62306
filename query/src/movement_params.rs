//! Parameters that select movements, for lists and streams.

use chain::movement::Kind;
use schema::ledger::Class;
use web::call::Call;
use web::http_error::HttpError;

use crate::params::shown;

/// An expression for the values of `kind`.
pub(crate) const KINDS: &str = r"^\s*((transfer|fee|fee_refund|mint|burn|ibc_out|ibc_in|ibc_refund|bridge_out|bridge_in|stake|reward)\s*)?(,\s*((transfer|fee|fee_refund|mint|burn|ibc_out|ibc_in|ibc_refund|bridge_out|bridge_in|stake|reward)\s*)?)*$";

/// The kinds that the query parameter `kind` names, by commas or repeated; none of them for all.
pub(crate) fn kinds(call: &Call<'_>) -> Result<Vec<Kind>, HttpError> {
    let mut kinds = Vec::new();
    for name in words(call, "kind") {
        let Some(kind) = Kind::ALL.iter().find(|kind| kind.name() == name) else {
            let names: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
            return Err(HttpError::bad_request(format!(
                "[INVALID_VALUE] invalid value for kind: {} (must be any of {})",
                shown(name),
                names.join(", ")
            )));
        };
        if !kinds.contains(kind) {
            kinds.push(*kind);
        }
    }
    Ok(kinds)
}

/// An expression for the values of `direction`.
pub(crate) const DIRECTIONS: &str = r"^\s*(in|out|self)?\s*(,\s*(in|out|self)?\s*)*$";

/// The classes that the query parameter `direction` names; all of them if there is none.
pub(crate) fn directions(call: &Call<'_>) -> Result<Vec<Class>, HttpError> {
    let named = [("out", Class::Out), ("in", Class::In), ("self", Class::ToItself)];
    let mut classes = Vec::new();
    for text in words(call, "direction") {
        let Some((_, class)) = named.iter().find(|(name, _)| *name == text) else {
            return Err(HttpError::bad_request(format!(
                "[INVALID_VALUE] invalid value for direction: {} (must be any of in, out, self)",
                shown(text)
            )));
        };
        if !classes.contains(class) {
            classes.push(*class);
        }
    }
    Ok(if classes.is_empty() { named.map(|(_, class)| class).to_vec() } else { classes })
}

/// The words of a query parameter, separated by commas or repeated.
fn words<'a>(call: &'a Call<'_>, name: &'a str) -> impl Iterator<Item = &'a str> {
    let values = call.all(name).flat_map(|value| value.split(',')).map(str::trim);
    values.filter(|word| !word.is_empty())
}

/// True for the kinds of the class of fees.
pub(crate) fn is_fee(kind: &Kind) -> bool {
    matches!(kind, Kind::Fee | Kind::FeeRefund)
}
