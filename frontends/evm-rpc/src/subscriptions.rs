//! `eth_subscribe` over WebSocket: new heads, and new logs that a filter selects.
//!
//! A subscription reads the blocks after its last one when the socket has sent what came before. So none of them waits in memory,
//! whatever the client reads.
//!
//! # Invariants
//! * Each block is sent once, in order, unless it is removed by a rollback: then its logs are sent again as removed, and the
//!   blocks that replace it follow.
//! * A client that is too far behind, or does not know what was rolled back, gets a closed socket with the reason and never a gap.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chain::evm::log_filter::LogFilter;
use futures_util::StreamExt as _;
use futures_util::stream::unfold;
use query::evm::{Error, EvmView, NewBlocks};
use query::{Indexer, SlowReader};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::sleep;
use web::app::App;
use web::pushes::{MAX_STREAMS, Push, Pushes};

use crate::Dialect;
use crate::go_json::Block;
use crate::log_query::{Blocks, LogQuery};
use crate::params::{self, Type, Value};
use crate::reads::Failure;
use crate::rpc_error::{BUSY, DEFAULT, INTERNAL, INVALID_PARAMS, METHOD_MISSING, RpcError};
use crate::unique_id::unique_id;

/// Maximum of subscriptions of all sockets: each remembers [`REMEMBERED`] bytes.
const MAX_OPEN: usize = 4096;

/// Bytes of logs that a subscription remembers, to send them again as removed.
const REMEMBERED: usize = 64 << 10;

/// Blocks that it remembers.
const REMEMBERED_BLOCKS: usize = 64;

/// Bytes of messages that are made at once.
const AT_ONCE: usize = 64 << 10;

/// Time after which a block that waits for its header is looked for again.
const HEADER_WAIT: Duration = Duration::from_millis(20);

const TOO_SLOW: &str = "this client reads too slowly: subscribe again, and read the blocks in between";
const ROLLED_BACK: &str = "more blocks were rolled back than a subscription remembers: subscribe again";
const FAILED: &str = "internal server error";

/// What a client subscribes to.
enum Topic {
    Heads,
    /// The logs that a filter selects, in blocks from one to another.
    Logs(LogFilter, u64, u64),
}

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
        let topic = Topic::read(params)?;
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

impl Topic {
    /// Reads the parameters of `eth_subscribe`, with the errors of go-ethereum (`rpc/json.go`, `rpc/handler.go`).
    fn read(params: Option<&str>) -> Result<Self, RpcError> {
        let list = params::list(params)?;
        let name = list.first().and_then(|json| serde_json::from_str::<String>(json.get()).ok());
        let name = name
            .ok_or_else(|| RpcError::new(INVALID_PARAMS, "expected subscription name as first argument"))?;
        match name.as_str() {
            "newHeads" => params::typed(&list, &[Type::Id]).map(|_| Self::Heads),
            "logs" => match params::typed(&list, &[Type::Id, Type::LogQuery])?.pop() {
                Some(Value::LogQuery(query)) => Self::logs(*query),
                _ => Err(RpcError::new(INTERNAL, "internal server error")),
            },
            _ => Err(RpcError::new(METHOD_MISSING, format!("no {name:?} subscription in eth namespace"))),
        }
    }

    /// Tags are of new blocks, and so is a query without blocks.
    fn logs(LogQuery { blocks, filter }: LogQuery) -> Result<Self, RpcError> {
        let number = |block| match block {
            Block::Number(number) => Some(number),
            Block::Head | Block::Hash(_) => None,
        };
        let (from, to) = match blocks {
            Blocks::Range(from, to) => (number(from), number(to)),
            Blocks::One(_) => (None, Some(0)),
        };
        match (from, to) {
            (Some(from), Some(to)) if from <= to => Ok(Self::Logs(filter, from, to)),
            (from, None) => Ok(Self::Logs(filter, from.unwrap_or(0), u64::MAX)),
            _ => Err(RpcError::new(DEFAULT, "invalid block range params")),
        }
    }
}

/// A block that was sent.
struct Sent {
    height: u64,
    /// Of its CometBFT block.
    hash: [u8; 32],
    /// Its logs that were sent.
    logs: Vec<Bytes>,
}

/// The state of a subscription.
struct Reader {
    index: Arc<App<Indexer>>,
    dialect: Dialect,
    topic: Topic,
    id: String,
    blocks: NewBlocks,
    /// The last blocks, of which the newest is the last that was sent.
    sent: VecDeque<Sent>,
    ready: VecDeque<Bytes>,
    slow: SlowReader,
    /// When it last had every block.
    caught_up: Instant,
    is_over: bool,
    _place: OwnedSemaphorePermit,
}

/// What a read found.
enum Found {
    /// Messages, or blocks without any.
    Some,
    /// No new block.
    Nothing,
    /// The socket cannot go on.
    End(&'static str),
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
        let (first, head) = (view.first(), view.head());
        if matches!(topic, Topic::Heads) {
            view.new_head(head.max(first)).map_err(of_method)?;
        }
        let mut sent = VecDeque::new();
        for height in head.saturating_sub(REMEMBERED_BLOCKS as u64 - 1).max(first)..=head {
            let hash = view.history(height).map_err(of_method)?;
            sent.extend(hash.map(|hash| Sent { height, hash, logs: Vec::new() }));
        }
        drop(view);
        let (index, ready, caught_up) = (Arc::clone(index), VecDeque::new(), Instant::now());
        Ok(Self {
            index,
            dialect,
            topic,
            id,
            blocks,
            sent,
            ready,
            slow,
            caught_up,
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
                    let waits_for_header = self.sent.back().is_some_and(|last| last.height < height);
                    tokio::select! {
                        changed = self.blocks.wait() => if !changed { return None },
                        () = sleep(HEADER_WAIT), if waits_for_header => {}
                    }
                }
                Ok(Found::End(reason)) => {
                    self.is_over = true;
                    return Some((Push::Close(reason), self));
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
        let had_some = !self.sent.is_empty();
        while let Some(last) = self.sent.back()
            && view.history(last.height)? != Some(last.hash)
        {
            for log in self.sent.pop_back().map(|removed| removed.logs).unwrap_or_default().iter().rev() {
                if let Some(log) = log.strip_suffix(b"false}") {
                    self.push(&[log, b"true}"].concat());
                }
            }
        }
        if had_some && self.sent.is_empty() {
            return Ok(Found::End(ROLLED_BACK));
        }
        let next = self.sent.back().map_or(view.first(), |last| last.height + 1);
        if next > view.head() {
            return Ok(if self.ready.is_empty() { Found::Nothing } else { Found::Some });
        }
        if view.head() - next >= self.slow.blocks && self.caught_up.elapsed() >= self.slow.time {
            return Ok(Found::End(TOO_SLOW));
        }
        let (mut bytes, mut found) = (0, Found::Nothing);
        for height in next..=view.head() {
            match self.block(&view, height) {
                Ok(more) => (bytes, found) = (bytes + more, Found::Some),
                // Headers that are late.
                Err(Error::Behind { is_written: true, .. }) => break,
                Err(error) => return Err(error),
            }
            if bytes >= AT_ONCE {
                break;
            }
        }
        Ok(if self.ready.is_empty() { found } else { Found::Some })
    }

    /// Makes the messages of a block; their bytes.
    fn block(&mut self, view: &EvmView<'_>, height: u64) -> Result<usize, Error> {
        let Some(hash) = view.history(height)? else { return Ok(0) };
        let (results, is_log) = match &self.topic {
            Topic::Heads => (view.new_head(height)?.into_iter().collect(), false),
            Topic::Logs(filter, from, to) if (*from..=*to).contains(&height) => {
                (view.block_logs(filter, height)?, true)
            }
            Topic::Logs(..) => (Vec::new(), true),
        };
        for result in &results {
            self.push(result);
        }
        let bytes = results.iter().map(Vec::len).sum();
        let logs = results.into_iter().filter(|_| is_log).map(Bytes::from).collect();
        self.sent.push_back(Sent { height, hash, logs });
        let of = |sent: &Sent| sent.logs.iter().map(Bytes::len).sum::<usize>();
        let mut remembered: usize = self.sent.iter().map(of).sum();
        while self.sent.len() > 1 && (remembered > REMEMBERED || self.sent.len() > REMEMBERED_BLOCKS) {
            remembered -= self.sent.pop_front().as_ref().map_or(0, of);
        }
        Ok(bytes)
    }

    fn push(&mut self, result: &[u8]) {
        let head = br#"{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":""#;
        let parts = [head, self.id.as_bytes(), br#"","result":"#, result, b"}}\n"];
        self.ready.push_back(parts.concat().into());
    }
}
