//! What a movement is tested for, where no list has just those that pass.

use chain::Account;
use chain::movement::{Kind, Movement};
use schema::ledger::{Class, class_of};
use web::call::Call;
use web::http_error::HttpError;

use crate::params::shown;

/// A test of movements.
#[derive(Clone, Debug, Default)]
pub(crate) struct MovementFilter {
    /// Only these kinds, if there are any.
    pub(crate) kinds: Vec<Kind>,
    /// Only this token of a contract that has several.
    pub(crate) token_id: Option<String>,
    /// Only what an account (the first one) has given to the second one or received from it.
    pub(crate) between: Option<(Account, Account)>,
    /// Only movements of these classes to one of their accounts, if there are any.
    pub(crate) classes: Vec<Class>,
}

impl MovementFilter {
    /// True if every movement passes.
    pub(crate) fn is_none(&self) -> bool {
        self.kinds.is_empty() && self.token_id.is_none() && self.between.is_none() && self.classes.is_empty()
    }

    /// True if it passes.
    pub(crate) fn passes(&self, movement: &Movement) -> bool {
        let is_between = |(account, other)| {
            let sides = [movement.from, movement.to];
            sides == [Some(account), Some(other)] || sides == [Some(other), Some(account)]
        };
        let is_token = |id: &String| movement.token_id.as_ref() == Some(id);
        let is_of_class = |side: Class| self.classes.contains(&class_of(movement, side));
        (self.kinds.is_empty() || self.kinds.contains(&movement.kind))
            && self.token_id.as_ref().is_none_or(is_token)
            && self.between.is_none_or(is_between)
            && (self.classes.is_empty()
                || movement.from.is_some() && is_of_class(Class::Out)
                || movement.to.is_some() && is_of_class(Class::In))
    }
}

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
