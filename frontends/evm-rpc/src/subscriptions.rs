//! `eth_subscribe` over WebSocket: new heads, and new logs that a filter selects.
//!
//! A subscription reads the blocks after its last one when the socket has sent what came before. So none of them waits in memory,
//! whatever the client reads.
//!
//! # Invariants
//! * A client that is too far behind, or does not know what was rolled back, gets a closed socket with the reason and never a gap.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use query::evm::{Error, NewBlocks};
use query::{Indexer, SlowReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use web::app::App;
use web::pushes::{MAX_STREAMS, Push, Pushes};

use crate::Dialect;
use crate::follower::{Follower, Found, Memory, Topic};
use crate::params::{self, Type, Value};
use crate::reads::Failure;
use crate::rpc_error::{BUSY, DEFAULT, INTERNAL, INVALID_PARAMS, METHOD_MISSING, RpcError};
use crate::unique_id::unique_id;

/// Maximum of subscriptions of all sockets: each remembers [`MEMORY`].
const MAX_OPEN: usize = 4096;

/// What a subscription remembers.
const MEMORY: Memory = Memory { blocks: 64, bytes: 64 << 10 };

/// Bytes of messages that are made at once.
const AT_ONCE: usize = 64 << 10;

/// Time after which a block that waits for its header is looked for again.
const HEADER_WAIT: Duration = Duration::from_millis(20);

const TOO_SLOW: &str = "this client reads too slowly: subscribe again, and read the blocks in between";
const ROLLED_BACK: &str = "more blocks were rolled back than a subscription remembers: subscribe again";
const FAILED: &str = "internal server error";

/// The subscriptions of a server.
#[derive(Clone)]
pub(crate) struct Subscriptions {
    places: Arc<Semaphore>,
    pub(crate) slow: SlowReader,
}

impl Default for Subscriptions {
    fn default() -> Self {
        Self { places: Arc::new(Semaphore::new(MAX_OPEN)), slow: SlowReader::default() }
    }
}

impl Subscriptions {
    /// Opens a subscription in a socket; its id.
    pub(crate) fn open(
        &self,
        index: &Arc<App<Indexer>>,
        dialect: Dialect,
        pushes: &Pushes,
        params: Option<&str>,
    ) -> Result<Vec<u8>, RpcError> {
        let topic = topic(params)?;
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place =
            place.map_err(|_| RpcError::new(BUSY, "too many subscriptions are open; try again later"))?;
        let id = unique_id();
        let reader = Reader::new(index, dialect, topic, id.clone(), self.slow, place)?;
        if !pushes.open(id.clone(), unfold(reader, Reader::next).boxed()) {
            let message =
                format!("a connection has at most {MAX_STREAMS} subscriptions: end one of them first");
            return Err(RpcError::new(DEFAULT, message));
        }
        Ok(format!("\"{id}\"").into_bytes())
    }
}

/// Ends a subscription of a socket.
pub(crate) fn close(pushes: Option<&Pushes>, params: Option<&str>) -> Result<Vec<u8>, RpcError> {
    let values = params::read(params, &[Type::Id])?;
    match values.first() {
        Some(Value::Text(id)) if pushes.is_some_and(|pushes| pushes.close(id)) => Ok(b"true".to_vec()),
        _ => Err(RpcError::new(DEFAULT, "subscription not found")),
    }
}

/// Reads the parameters of `eth_subscribe`, with the errors of go-ethereum (`rpc/json.go`, `rpc/handler.go`).
fn topic(params: Option<&str>) -> Result<Topic, RpcError> {
    let list = params::list(params)?;
    let name = list.first().and_then(|json| serde_json::from_str::<String>(json.get()).ok());
    let name =
        name.ok_or_else(|| RpcError::new(INVALID_PARAMS, "expected subscription name as first argument"))?;
    match name.as_str() {
        "newHeads" => params::typed(&list, &[Type::Id]).map(|_| Topic::Heads),
        "logs" => match params::typed(&list, &[Type::Id, Type::LogQuery])?.pop() {
            Some(Value::LogQuery(query)) => Topic::logs(*query),
            _ => Err(RpcError::new(INTERNAL, "internal server error")),
        },
        _ => Err(RpcError::new(METHOD_MISSING, format!("no {name:?} subscription in eth namespace"))),
    }
}

/// The state of a subscription.
struct Reader {
    index: Arc<App<Indexer>>,
    dialect: Dialect,
    follower: Follower,
    id: String,
    blocks: NewBlocks,
    ready: VecDeque<Bytes>,
    slow: SlowReader,
    /// When it last had every block.
    caught_up: Instant,
    is_slow: bool,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

impl Reader {
    fn new(
        index: &Arc<App<Indexer>>,
        dialect: Dialect,
        topic: Topic,
        id: String,
        slow: SlowReader,
        place: OwnedSemaphorePermit,
    ) -> Result<Self, RpcError> {
        // Before the snapshot: a block in between is seen.
        let blocks = index.state().new_blocks()?;
        let view = index.state().evm(dialect)?;
        let of_method = |error: Error| Failure::from(error).into_reply("eth_subscribe");
        let follower = Follower::new(&view, topic, MEMORY).map_err(of_method)?;
        drop(view);
        let (index, ready, caught_up) = (Arc::clone(index), VecDeque::new(), Instant::now());
        Ok(Self {
            index,
            dialect,
            follower,
            id,
            blocks,
            ready,
            slow,
            caught_up,
            is_slow: false,
            is_over: false,
            _place: place,
        })
    }

    async fn next(mut self) -> Option<(Push, Self)> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some((Push::Message(message), self));
            }
            if self.is_over {
                return None;
            }
            let height = self.blocks.height();
            match self.read() {
                Ok(Found::Some) => tokio::task::yield_now().await,
                Ok(Found::Nothing) => {
                    self.caught_up = Instant::now();
                    let waits_for_header = self.follower.last().is_some_and(|last| last < height);
                    tokio::select! {
                        changed = self.blocks.wait() => if !changed { return None },
                        () = sleep(HEADER_WAIT), if waits_for_header => {}
                    }
                }
                Ok(Found::Lost) => {
                    self.is_over = true;
                    return Some((Push::Close(if self.is_slow { TOO_SLOW } else { ROLLED_BACK }), self));
                }
                Err(error) => {
                    tracing::error!(?error, "a subscription ended with an error");
                    self.is_over = true;
                    return Some((Push::Close(FAILED), self));
                }
            }
        }
    }

    /// Reads the next blocks.
    fn read(&mut self) -> Result<Found, Error> {
        let index = Arc::clone(&self.index);
        let view = index.state().evm(self.dialect)?;
        let next = self.follower.last().map_or(view.first(), |last| last + 1);
        self.is_slow = next <= view.head()
            && view.head() - next >= self.slow.blocks
            && self.caught_up.elapsed() >= self.slow.time;
        if self.is_slow {
            return Ok(Found::Lost);
        }
        let mut results = Vec::new();
        let found = self.follower.read(&view, AT_ONCE, &mut results)?;
        if !matches!(found, Found::Lost) {
            results.iter().for_each(|result| self.push(result));
        }
        Ok(found)
    }

    fn push(&mut self, result: &[u8]) {
        let head = br#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":""#;
        let parts = [head, self.id.as_bytes(), br#"","result":"#, result, b"}}\n"];
        self.ready.push_back(parts.concat().into());
    }
}
