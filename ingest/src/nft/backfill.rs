//! Backfill of metadata of NFTs and blocks: asks the stored questions until they are answered.
//!
//! Questions of the newest blocks are asked often, because their state was not final yet. Older ones failed on a node
//! that does not answer, and are asked with backoff.

use std::sync::Arc;
use std::time::Duration;

use node::retry::Backoff;
use node::{Kind, Node};
use schema::nft::{About, Place, Question, Questions};
use store::{Message, Order, Store};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::client::MetadataClient;
use super::range::Asked;
use super::{LateReply, Reply};
use crate::finality::COMMITTED_DEPTH;
use crate::source::Proposers;
use crate::{Error, Progress, meter};

/// Questions per round.
const ROUND: usize = 256;

/// Timeout of the questions of one height, in one round.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Backoff between rounds of older questions without a reply.
const PAUSES: Backoff =
    Backoff { initial: Duration::from_millis(200), max: Duration::from_secs(30), jitter: true };

/// Pause between rounds of the newest blocks' questions: states are committed within a fraction of a second.
const SOON: Duration = Duration::from_millis(200);

/// Minimum time between two log lines about unanswered questions.
const REMINDER: Duration = Duration::from_mins(1);

/// The backfill of one database.
pub(crate) struct Backfill {
    pub(crate) client: Arc<MetadataClient>,
    pub(crate) node: Arc<Node>,
    pub(crate) proposers: Arc<Proposers>,
    pub(crate) store: Arc<dyn Store>,
    /// Progress of the block lane, which stores questions and takes answers.
    pub(crate) blocks: watch::Receiver<Progress>,
    pub(crate) answers: mpsc::Sender<LateReply>,
}

type Keyed = (Place, Question);

impl Backfill {
    /// Runs until the lane has ended.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let (mut after, mut older_open, mut fruitless, mut due) = (None, false, 0_u32, Instant::now());
        let mut log = FailureLog::default();
        loop {
            let last = self.blocks.borrow_and_update().height;
            let newest = Place::of_event(last.saturating_sub(COMMITTED_DEPTH), 0);
            // A renewal may wait for a height to come.
            let end = Place::of_event(last.saturating_add(1), 0);
            let mut round = self.questions(Some(&newest), &end)?;
            let newest_open = !round.is_empty();
            let first = self.questions(None, &end)?.into_iter().next().map(|(place, _)| place.height);
            meter::metadata_missing_from(first.filter(|first| *first <= last).unwrap_or_default());
            let older_due = Instant::now() >= due;
            if older_due {
                let mut older = self.questions(after.as_ref(), &newest)?;
                if older.is_empty() {
                    older = self.questions(None, &newest)?;
                }
                after = older.last().map(|(place, _)| place.clone());
                older_open = !older.is_empty();
                round.extend(older);
            }
            let (answered, failure) = self.ask(round, &newest).await?;
            let count = answered.len();
            if let Some(error) = failure {
                log.add(&error);
            }
            for late in answered {
                if self.answers.send(late).await.is_err() {
                    return Ok(());
                }
            }
            if older_due {
                fruitless = if count > 0 { 0 } else { fruitless.saturating_add(1) };
                due = Instant::now() + if count > 0 { Duration::ZERO } else { PAUSES.delay(fruitless) };
            }
            let news = self.blocks.changed();
            let moved = if count > 0 {
                // Answered questions are stored as open until the lane has committed the replies.
                tokio::time::timeout(Duration::from_secs(1), news).await
            } else if newest_open {
                tokio::time::sleep(SOON).await;
                continue;
            } else if older_open || !older_due {
                // If older questions were skipped, they may include questions that were new before.
                tokio::time::timeout_at(due, news).await
            } else {
                Ok(news.await)
            };
            if let Ok(Err(_)) = moved {
                return Ok(());
            }
        }
    }

    /// Some open questions after the key `after`, or the first ones, up to `end`.
    fn questions(&self, after: Option<&Place>, end: &Place) -> Result<Vec<Keyed>, Error> {
        let snapshot = self.store.snapshot()?;
        let all = &store::key::All;
        let rows = match after {
            Some(after) => store::table::rows_after::<Questions>(&*snapshot, all, after, Order::Asc, ROUND)?,
            None => store::table::rows::<Questions>(&*snapshot, all, Order::Asc, ROUND)?,
        };
        let rows = rows.into_iter().map(|(place, Message(question))| (place, question));
        Ok(rows.take_while(|(place, _)| place <= end).collect())
    }

    /// Asks height by height. Returns the replies, and the reason of a failure; for questions after `newest`, a state
    /// that is not committed yet is not a failure.
    async fn ask(
        &self,
        mut round: Vec<Keyed>,
        newest: &Place,
    ) -> Result<(Vec<LateReply>, Option<String>), Error> {
        round.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let mut failure = None;
        let mut answered = self.take_proposers(&mut round).await;
        for questions in round.chunk_by(|(a, _), (b, _)| a.height == b.height) {
            let height = questions.first().map_or(0, |(place, _)| place.height);
            let probe = self.client.probe(height)?;
            let asked = Asked::read(&*self.store.snapshot()?, questions)?;
            let request = self.client.ask(height, probe.as_ref(), asked.abouts());
            let Ok(replies) = tokio::time::timeout(ANSWER_TIMEOUT, request).await else {
                failure.get_or_insert_with(|| {
                    format!("no answer about height {height} within {ANSWER_TIMEOUT:?}")
                });
                continue;
            };
            let mut not_yet = |error: node::Error, place: &Place| {
                if error.kind() != Kind::NotYet || place <= newest {
                    failure.get_or_insert_with(|| error.to_string());
                }
            };
            for ((place, question), reply) in questions.iter().zip(asked.replies(replies)) {
                let (place, question) = (place.clone(), question.clone());
                match reply {
                    Ok(Some(reply)) => answered.push(LateReply { place, question, reply }),
                    Ok(None) => {}
                    Err(error) => not_yet(error, &place),
                }
            }
        }
        Ok((answered, failure))
    }
}

impl Backfill {
    /// Removes the questions about proposers from `round`, and returns the replies to them.
    async fn take_proposers(&self, round: &mut Vec<Keyed>) -> Vec<LateReply> {
        let mut answered = Vec::new();
        let is_of_block = |(_, question): &mut Keyed| matches!(question.about, Some(About::Proposer(_)));
        for (place, question) in round.extract_if(.., is_of_block) {
            let Some(About::Proposer(asked)) = &question.about else { continue };
            let reply = match <[u8; 20]>::try_from(&asked.address[..]) {
                Ok(address) => self.proposers.late(&self.node, &address).await.map(Reply::Proposer),
                Err(_) => Some(Reply::No),
            };
            answered.extend(reply.map(|reply| LateReply { place, question, reply }));
        }
        answered
    }
}

/// Log lines about unanswered questions, at most one per [`REMINDER`].
#[derive(Default)]
struct FailureLog(Option<Instant>);

impl FailureLog {
    fn add(&mut self, error: &str) {
        if self.0.is_none_or(|logged| logged.elapsed() >= REMINDER) {
            self.0 = Some(Instant::now());
            tracing::warn!(error, "names or URIs of NFTs are missing until the node answers");
        }
    }
}
