//! Asks the questions that blocks could not wait for, until they are answered.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use node::retry::Backoff;
use schema::nft::{Questions, question_height};
use store::{Message, Order, Store};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::Late;
use super::asker::{AT_ONCE, Asker};
use crate::Error;
use crate::Mark;

/// Questions that are looked at together.
const ROUND: usize = 64;

/// A question is given up for this round after this long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Pauses between rounds in which nothing was answered.
const PAUSES: Backoff =
    Backoff { initial: Duration::from_millis(200), max: Duration::from_secs(30), jitter_percent: 20 };

/// How often the log hears of questions that stay open.
const REMINDER: Duration = Duration::from_mins(1);

/// The asker of one database's open questions.
pub(crate) struct Completer {
    pub(crate) asker: Arc<Asker>,
    pub(crate) store: Arc<dyn Store>,
    /// The block lane, which stores questions and takes answers.
    pub(crate) blocks: watch::Receiver<Mark>,
    pub(crate) answers: mpsc::Sender<Late>,
}

impl Completer {
    /// Runs for ever, or until the lane is gone.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let (mut after, mut fruitless, mut said): (Option<u64>, u32, Option<Instant>) = (None, 0, None);
        loop {
            let round = self.round(after)?;
            after = round.last().map(|(number, _)| *number);
            if round.is_empty() {
                // Either there is none, or the next round begins from the start.
                if self.blocks.changed().await.is_err() {
                    return Ok(());
                }
                continue;
            }
            let (asked, answered) = (round.len(), self.ask(round).await);
            let count = answered.len();
            for late in answered {
                if self.answers.send(late).await.is_err() {
                    return Ok(());
                }
            }
            if count > 0 {
                (fruitless, said) = (0, None);
                // What was answered is still stored as open until the lane has committed it.
                drop(tokio::time::timeout(Duration::from_secs(1), self.blocks.changed()).await);
                continue;
            }
            if said.is_none_or(|said| said.elapsed() >= REMINDER) {
                tracing::warn!(
                    asked,
                    "the node does not answer questions about NFTs: names or URIs are missing until it does"
                );
                said = Some(Instant::now());
            }
            tokio::time::sleep(PAUSES.delay(fruitless)).await;
            fruitless = fruitless.saturating_add(1);
        }
    }

    /// Some open questions beyond number `after`; the first ones if there are none.
    fn round(&self, after: Option<u64>) -> Result<Vec<(u64, schema::nft::Question)>, Error> {
        let snapshot = self.store.snapshot()?;
        let rows = match after {
            Some(after) => store::table::rows_after::<Questions>(
                &*snapshot,
                &store::key::All,
                &after,
                Order::Asc,
                ROUND,
            )?,
            None => Vec::new(),
        };
        let rows = if rows.is_empty() {
            store::table::rows::<Questions>(&*snapshot, &store::key::All, Order::Asc, ROUND)?
        } else {
            rows
        };
        Ok(rows.into_iter().map(|(number, Message(question))| (number, question)).collect())
    }

    async fn ask(&self, round: Vec<(u64, schema::nft::Question)>) -> Vec<Late> {
        let asker = &self.asker;
        let asked = futures_util::stream::iter(round).map(|(number, question)| async move {
            let about = question.about.as_ref()?;
            let reply = asker.ask(question_height(number), about);
            match tokio::time::timeout(PATIENCE, reply).await {
                Ok(Ok(reply)) => Some(Late { number, reply, question: question.clone() }),
                Ok(Err(error)) => {
                    tracing::debug!(number, %error, "a question about an NFT stays open");
                    None
                }
                Err(_) => None,
            }
        });
        asked.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
    }
}
