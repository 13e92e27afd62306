//! Messages that a WebSocket sends besides its responses: streams that the handler of a message opens and closes.
//!
//! # Invariants
//! * A stream is polled only when the socket has sent what came before, so a message waits in memory once per stream.
//! * The first message of a stream follows the response to the message that opened it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use tokio::sync::oneshot;

/// Maximum of open streams of a socket.
pub const MAX_STREAMS: usize = 64;

/// What a stream does.
#[derive(Clone, Debug)]
pub enum Push {
    /// Sends a message.
    Message(Bytes),
    /// Closes the socket, with the reason, at most 123 bytes (RFC 6455 §5.5).
    Close(&'static str),
}

/// The messages of one stream.
pub type PushStream = BoxStream<'static, Push>;

/// The streams of a socket, as the handler of one of its messages sees them.
#[derive(Clone, Default)]
pub struct Pushes {
    /// What ends each stream, by its id.
    open: Arc<Mutex<HashMap<String, oneshot::Sender<()>>>>,
    /// Those that this message has opened.
    opened: Arc<Mutex<Vec<PushStream>>>,
}

impl Pushes {
    /// Those of the same socket, for another message.
    pub(crate) fn of_next_message(&self) -> Self {
        Self { open: Arc::clone(&self.open), opened: Arc::default() }
    }

    /// The streams that the message has opened.
    pub(crate) fn take_opened(&self) -> Vec<PushStream> {
        std::mem::take(&mut *locked(&self.opened))
    }

    /// Adds `stream` to the socket. False if it has a stream with this id, or [`MAX_STREAMS`].
    pub fn open(&self, id: String, stream: PushStream) -> bool {
        let mut open = locked(&self.open);
        if open.len() >= MAX_STREAMS {
            return false;
        }
        let Entry::Vacant(place) = open.entry(id) else { return false };
        let (end, ended) = oneshot::channel();
        place.insert(end);
        locked(&self.opened).push(stream.take_until(ended).boxed());
        true
    }

    /// Ends the stream with this id. False if there is none.
    pub fn close(&self, id: &str) -> bool {
        locked(&self.open).remove(id).is_some()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Held for a change of a collection only.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
