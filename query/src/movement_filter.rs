//! What a movement is tested for, where no list has just those that pass.

use chain::Account;
use chain::movement::{Kind, Movement};
use schema::ledger::{Class, class_of};

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
