//! Asks again about tokens that are described, a few at a time and in turns: a contract may change its name without a log.
//!
//! # Invariants
//! * Each turn asks about at most [`AT_ONCE`] tokens, whatever number of tokens anyone makes.
//! * Only what a token says of itself replaces what it said before: a refusal or a failure changes nothing.

use schema::tokens::{self, Described};
use tokio::time::Instant;

use super::TokenSource;
use crate::Error;

/// Tokens of a turn.
const AT_ONCE: usize = 16;

/// Where the next turn begins.
pub(super) struct Turn {
    /// The last token that was asked again.
    after: u64,
    /// When the next ones are; never if absent.
    due: Option<Instant>,
}

impl Turn {
    pub(super) fn new(source: &TokenSource) -> Self {
        Self { after: 0, due: source.renew_every.map(|every| Instant::now() + every) }
    }

    fn is_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }
}

impl TokenSource {
    /// What the tokens of a turn say in the state of `head`, if it is something else than before. None if no turn is due.
    pub(super) async fn renewed(&self, head: u64, turn: &mut Turn) -> Result<Vec<Described>, Error> {
        if !turn.is_due() {
            return Ok(Vec::new());
        }
        turn.due = self.renew_every.map(|every| Instant::now() + every);
        let (described, last) = tokens::described(&*self.finality.store.snapshot()?, turn.after, AT_ONCE)?;
        turn.after = last.unwrap_or(0);
        let (said, _, _) = self.ask(head, described.chunks(1)).await?;
        let snapshot = self.finality.store.snapshot()?;
        let mut changed = Vec::new();
        for described in said {
            if tokens::renewed(&*snapshot, &described)?.is_some() {
                changed.push(described);
            }
        }
        Ok(changed)
    }
}
