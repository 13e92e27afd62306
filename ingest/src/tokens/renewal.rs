//! Which described tokens are asked again, a few at a time and in turns: a contract may change its name without a log.
//!
//! # Invariants
//! * Each turn is of at most [`AT_ONCE`] tokens, whatever number of tokens anyone makes.
//! * Only what a token says of itself replaces what it said before: a refusal or a failure changes nothing.

use std::time::Duration;

use chain::movement::Token;
use schema::tokens::{self, Described, FirstSeen};
use store::Snapshot;
use tokio::time::Instant;

use crate::Error;

/// Tokens of a turn.
const AT_ONCE: usize = 16;

/// Where the next turn begins.
pub(super) struct Turn {
    /// Interval between turns; none if absent.
    every: Option<Duration>,
    due: Instant,
    /// The last token that was asked again.
    after: u64,
}

impl Turn {
    pub(super) fn new(every: Option<Duration>) -> Self {
        Self { every, due: Instant::now() + every.unwrap_or_default(), after: 0 }
    }

    /// The tokens of the next turn, if one is due.
    pub(super) fn next(&mut self, snapshot: &dyn Snapshot) -> Result<Vec<(Token, FirstSeen)>, Error> {
        let Some(every) = self.every.filter(|_| self.due <= Instant::now()) else { return Ok(Vec::new()) };
        self.due = Instant::now() + every;
        let (described, last) = tokens::described(snapshot, self.after, AT_ONCE)?;
        self.after = last.unwrap_or(0);
        Ok(described)
    }
}

/// Those replies that say something else than is stored.
pub(super) fn changed(snapshot: &dyn Snapshot, said: Vec<Described>) -> Result<Vec<Described>, Error> {
    let mut changed = Vec::new();
    for described in said {
        if tokens::renewed(snapshot, &described)?.is_some() {
            changed.push(described);
        }
    }
    Ok(changed)
}
