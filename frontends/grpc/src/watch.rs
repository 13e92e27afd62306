//! Server-streaming RPCs over the event streams of the JSON API.
//!
//! # Invariants
//! * A stream ends with a status: that of its last event, `UNAVAILABLE` when the server stops, or `RESOURCE_EXHAUSTED`.

use futures_util::StreamExt as _;
use futures_util::future::{BoxFuture, Shared};
use futures_util::stream::{BoxStream, once};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tonic::Status;
use web::event::{Event, EventStream};
use web::http_error::HttpError;
use web::limits::share::Share;

use crate::status;
use crate::v1::{Reorg, StreamStart};

/// The messages of a stream.
pub(crate) type Messages<T> = BoxStream<'static, Result<T, Status>>;

/// Resolves when the server stops.
pub(crate) type Stopped = Shared<BoxFuture<'static, ()>>;

/// The content of an event.
pub(crate) enum Content<T> {
    Start(StreamStart),
    Row(T),
    Reorg(Reorg),
}

/// The messages of `events`, each made by `message` from the cursor and the content, until the server stops or there is
/// no room for one of them in the client's `share`.
pub(crate) fn messages<T, M>(
    events: EventStream,
    message: fn(String, Content<T>) -> M,
    share: Share,
    stopped: Stopped,
) -> Messages<M>
where
    T: DeserializeOwned + 'static,
    M: Send + 'static,
{
    // The bytes of the last message: nearly all of it is sent when the next one is taken.
    let mut held = None;
    let stopping = async { Err(Status::unavailable("the server stops; go on with the last cursor")) };
    events
        .map(move |event| {
            drop(held.take());
            held = share.hold(2 * event.data().len()).map_err(|error| status::from_error(&error))?;
            let content = content(&event)?;
            Ok(message(String::from_utf8_lossy(event.id()).into_owned(), content))
        })
        .take_until(stopped.clone())
        .chain(once(stopping).filter(move |_| std::future::ready(stopped.peek().is_some())))
        .boxed()
}

/// # Errors
/// The reason of the last event.
fn content<T: DeserializeOwned>(event: &Event) -> Result<Content<T>, Status> {
    #[derive(Deserialize)]
    struct End {
        reason: String,
    }
    let data = event.data();
    let content = match event.name() {
        "start" => serde_json::from_slice(data).map(Content::Start),
        "reorg" => serde_json::from_slice(data).map(Content::Reorg),
        "end" => match serde_json::from_slice(data) {
            Ok(End { reason }) => return Err(Status::aborted(reason)),
            Err(error) => Err(error),
        },
        _ => serde_json::from_slice(data).map(Content::Row),
    };
    content.map_err(|error| {
        tracing::error!(%error, event = event.name(), "an event cannot be read");
        status::from_error(&HttpError::internal(error))
    })
}
