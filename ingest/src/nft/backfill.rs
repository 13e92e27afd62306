//! Asks the questions that blocks could not wait for, until they are answered.
//!
//! The newest blocks' questions are asked often: their answers were not final yet. Older ones have met a node that does
//! not answer, and are asked at growing pauses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use node::Kind;
use node::retry::Backoff;
use schema::nft::{About, Question, Questions, question_height, question_number};
use store::{Message, Order, Store};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::LateAnswer;
use super::client::MetadataClient;
use crate::settled::DEEP;
use crate::{Error, Mark};

/// Questions that are looked at together.
const ROUND: usize = 256;

/// A question is given up for this round after this long.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Pauses between rounds of older questions in which nothing was answered.
const PAUSES: Backoff =
    Backoff { initial: Duration::from_millis(200), max: Duration::from_secs(30), jitter_percent: 20 };

/// The pause between rounds of the newest blocks' questions: states are committed within a fraction of a second.
const SOON: Duration = Duration::from_millis(200);

/// The log has no more than one line of questions without an answer in this time.
const REMINDER: Duration = Duration::from_mins(1);

/// The client of one database's open questions.
pub(crate) struct Backfill {
    pub(crate) client: Arc<MetadataClient>,
    pub(crate) store: Arc<dyn Store>,
    /// The block lane, which stores questions and takes answers.
    pub(crate) blocks: watch::Receiver<Mark>,
    pub(crate) answers: mpsc::Sender<LateAnswer>,
}

type Numbered = (u64, Question);

impl Backfill {
    /// Runs for ever, or until the lane is gone.
    pub(crate) async fn run(mut self) -> Result<(), Error> {
        let (mut after, mut older_open, mut fruitless, mut due) = (None, false, 0_u32, Instant::now());
        let mut outage = Outage::default();
        loop {
            let last = self.blocks.borrow_and_update().height;
            let newest = question_number(last.saturating_sub(DEEP), 0);
            let mut round = self.questions(Some(newest), u64::MAX)?;
            let newest_open = !round.is_empty();
            let older_due = Instant::now() >= due;
            if older_due {
                let mut older = self.questions(after, newest)?;
                if older.is_empty() {
                    older = self.questions(None, newest)?;
                }
                after = older.last().map(|(number, _)| *number);
                older_open = !older.is_empty();
                round.extend(older);
            }
            let (answered, failure) = self.ask(round, newest).await?;
            let count = answered.len();
            outage.note(count, failure);
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
                // What was answered is still stored as open until the lane has committed it.
                tokio::time::timeout(Duration::from_secs(1), news).await
            } else if newest_open {
                tokio::time::sleep(SOON).await;
                continue;
            } else if older_open || !older_due {
                // If they were not looked at, questions that were new before may be among them.
                tokio::time::timeout_at(due, news).await
            } else {
                Ok(news.await)
            };
            if let Ok(Err(_)) = moved {
                return Ok(());
            }
        }
    }

    /// Some open questions beyond number `after`, or the first, up to number `last`.
    fn questions(&self, after: Option<u64>, last: u64) -> Result<Vec<Numbered>, Error> {
        let snapshot = self.store.snapshot()?;
        let all = &store::key::All;
        let rows = match after {
            Some(after) => store::table::rows_after::<Questions>(&*snapshot, all, &after, Order::Asc, ROUND)?,
            None => store::table::rows::<Questions>(&*snapshot, all, Order::Asc, ROUND)?,
        };
        let rows = rows.into_iter().map(|(number, Message(question))| (number, question));
        Ok(rows.take_while(|(number, _)| *number <= last).collect())
    }

    /// Asks height by height. Gives what is answered, and why something is not, unless the state of one of the `newest`
    /// questions is only not there yet.
    async fn ask(
        &self,
        round: Vec<Numbered>,
        newest: u64,
    ) -> Result<(Vec<LateAnswer>, Option<String>), Error> {
        let mut heights: BTreeMap<u64, Vec<Numbered>> = BTreeMap::new();
        for (number, question) in round {
            heights.entry(question_height(number)).or_default().push((number, question));
        }
        let (mut answered, mut failure) = (Vec::new(), None);
        for (height, questions) in heights {
            let probe = self.client.probe(height)?;
            let questions = questions.into_iter().filter_map(|(n, it)| Some((n, it.about.clone()?, it)));
            let (abouts, questions): (Vec<About>, Vec<Numbered>) =
                questions.map(|(number, about, question)| (about, (number, question))).unzip();
            let asked = self.client.ask(height, probe.as_ref(), &abouts);
            let Ok(replies) = tokio::time::timeout(ANSWER_TIMEOUT, asked).await else {
                failure.get_or_insert_with(|| {
                    format!("no answer about height {height} within {ANSWER_TIMEOUT:?}")
                });
                continue;
            };
            for ((number, question), reply) in questions.into_iter().zip(replies) {
                match reply {
                    Ok(reply) => answered.push(LateAnswer { number, question, reply }),
                    Err(error) if error.kind() == Kind::NotYet && number > newest => {}
                    Err(error) => failure = failure.or(Some(error.to_string())),
                }
            }
        }
        Ok((answered, failure))
    }
}

/// What the log has about questions without an answer: a line when that begins, and one when it is over.
#[derive(Default)]
struct Outage {
    lasts: bool,
    logged: Option<Instant>,
}

impl Outage {
    fn note(&mut self, answered: usize, failure: Option<String>) {
        match failure {
            Some(error) if !self.lasts => {
                self.lasts = true;
                if self.logged.is_none_or(|logged| logged.elapsed() >= REMINDER) {
                    self.logged = Some(Instant::now());
                    tracing::warn!(error, "names or URIs of NFTs are missing until the node answers");
                }
            }
            None if self.lasts && answered > 0 => {
                self.lasts = false;
                tracing::info!("the node answers questions about NFTs");
            }
            _ => {}
        }
    }
}
