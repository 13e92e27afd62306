//! `eth_newFilter` and its relatives: readers of new blocks that a client polls. They are in the memory of this process, so a
//! client needs the same one for all of its calls.
//!
//! # Invariants
//! * A filter that is not polled for [`LIFETIME`] is removed, and there are at most [`MAX_OPEN`].
//! * A poll advances a filter only if its result is complete; polls of one filter follow each other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use query::Indexer;
use query::evm::EvmView;
use web::app::App;
use web::limits::share::Share;

use crate::calls::{MAX_RESPONSE, Outcome};
use crate::follower::{Follower, Found, Memory, Topic};
use crate::log_query::LogQuery;
use crate::params::Value;
use crate::reads::{Chain, Failure, Reads};
use crate::rpc_error::{BUSY, DEFAULT, RpcError};
use crate::unique_id::unique_id;

const MAX_OPEN: usize = 10_000;

/// Time between two polls.
const LIFETIME: Duration = Duration::from_mins(5);

/// What a filter remembers: all of them at most 170 MB, if each has so many logs.
const MEMORY: Memory = Memory { blocks: 16, bytes: 16 << 10 };

/// Bytes after which a poll returns what it has; the next one continues.
const AT_ONCE: usize = MAX_RESPONSE / 4;

/// The filters of a server.
#[derive(Clone, Default)]
pub(crate) struct Filters(Arc<Mutex<HashMap<String, Open>>>);

struct Open {
    filter: Arc<Filter>,
    polled: Instant,
}

struct Filter {
    follower: tokio::sync::Mutex<Arc<Follower>>,
    /// Of a filter for logs.
    query: Option<LogQuery>,
}

/// What a call needs besides the filters.
pub(crate) struct Context<'a> {
    pub(crate) index: &'a Arc<App<Indexer>>,
    pub(crate) chain: Chain,
    pub(crate) share: Option<&'a Share>,
}

impl Context<'_> {
    /// What `read` finds in one snapshot, in the share of the client. It may run twice.
    async fn read<T: Send + 'static>(
        self,
        method: &'static str,
        read: impl Fn(&Reads<'_>) -> Result<T, Failure> + Send + Sync + 'static,
    ) -> Result<T, RpcError> {
        let (index, chain) = (Arc::clone(self.index), self.chain);
        let job = move || {
            let reads = Reads::new(index.state(), &chain)?;
            read(&reads).map_err(|failure| failure.into_reply(method))
        };
        match self.share {
            Some(share) => share.run(job).await.map_err(|busy| RpcError::new(BUSY, busy.message()))?,
            None => job(),
        }
    }
}

fn not_found() -> RpcError {
    RpcError::new(DEFAULT, "filter not found")
}

impl Filters {
    /// The outcome of a call of `method` with these parameters.
    pub(crate) async fn call(&self, context: Context<'_>, method: &'static str, values: &[Value]) -> Outcome {
        match (method, values) {
            ("eth_newFilter", [Value::LogQuery(query)]) => {
                let topic = Topic::logs((**query).clone())?;
                self.open(context, method, topic, Some((**query).clone())).await
            }
            ("eth_newBlockFilter", _) => self.open(context, method, Topic::Hashes, None).await,
            ("eth_newPendingTransactionFilter", _) => {
                self.open(context, method, Topic::Transactions, None).await
            }
            ("eth_getFilterChanges", [Value::Text(id)]) => self.changes(context, method, id).await,
            ("eth_getFilterLogs", [Value::Text(id)]) => {
                let query = self.get(id).and_then(|filter| filter.query.clone()).ok_or_else(not_found)?;
                let query = [Value::LogQuery(Box::new(query))];
                context.read(method, move |reads| reads.logs(&query)).await
            }
            (_, [Value::Text(id)]) => Ok(self.all().remove(id).is_some().to_string().into_bytes()),
            _ => Err(crate::reads::no_argument()),
        }
    }

    async fn open(
        &self,
        context: Context<'_>,
        method: &'static str,
        topic: Topic,
        query: Option<LogQuery>,
    ) -> Outcome {
        let new = move |reads: &Reads<'_>| Ok(Follower::new(&reads.view, topic.clone(), MEMORY)?);
        let follower = tokio::sync::Mutex::new(Arc::new(context.read(method, new).await?));
        let mut all = self.all();
        all.retain(|_, open| open.polled.elapsed() < LIFETIME);
        if all.len() >= MAX_OPEN {
            return Err(RpcError::new(BUSY, "too many filters are open; try again later"));
        }
        let id = unique_id();
        let open = Open { filter: Arc::new(Filter { follower, query }), polled: Instant::now() };
        all.insert(id.clone(), open);
        Ok(format!("\"{id}\"").into_bytes())
    }

    /// What there is of the blocks since the last poll.
    async fn changes(&self, context: Context<'_>, method: &'static str, id: &str) -> Outcome {
        let filter = self.get(id).ok_or_else(not_found)?;
        let mut follower = filter.follower.lock().await;
        let before = Arc::clone(&follower);
        let read = move |reads: &Reads<'_>| {
            let (mut after, mut results) = ((*before).clone(), Vec::new());
            let view: &EvmView<'_> = &reads.view;
            let found = after.read(view, AT_ONCE, &mut results)?;
            let is_lost = matches!(found, Found::Lost);
            Ok((!is_lost).then(|| (after, [&b"["[..], &results.join(&b','), b"]"].concat())))
        };
        let Some((after, results)) = context.read(method, read).await? else {
            self.all().remove(id);
            return Err(not_found());
        };
        *follower = Arc::new(after);
        Ok(results)
    }

    /// A filter, which counts as polled.
    fn get(&self, id: &str) -> Option<Arc<Filter>> {
        let mut all = self.all();
        let open = all.get_mut(id)?;
        if open.polled.elapsed() >= LIFETIME {
            all.remove(id);
            return None;
        }
        open.polled = Instant::now();
        Some(Arc::clone(&open.filter))
    }

    /// The lock is held for look-ups only, which do not panic.
    fn all(&self) -> std::sync::MutexGuard<'_, HashMap<String, Open>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
