//! The response body of every server: bytes in frames of bounded size, or an event stream, with the permit.
//!
//! # Invariants
//! * The permit is held until hyper has the last frame. hyper takes a frame only when it has sent nearly all of the
//!   previous one, so a client that does not read its response holds its permit.
//! * Between two frames of a large body the tasks of other connections have their turn: a socket takes megabytes at once.
//!   A page of the light lane is one frame: sent in turns, pages of sixteen connections are no longer in the processor's
//!   cache, which costs an eighth of the rate.
//! * A stream is polled only when hyper takes a frame, so an unread event is in memory once per stream at most.
//! * A stop of the server ends a stream at its next poll, and wakes it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::Response;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use crate::bodies::Held;
use crate::event::{EventStream, HEARTBEAT};
use crate::limits::Limits;
use crate::limits::concurrency_limit::RequestPermit;
use crate::limits::share::{Pools, Share};
use crate::serve::request_timer::RequestTimer;

/// Maximum size of a frame: at most this and hyper's buffer are unsent without a permit. A page is one frame.
const WHOLE: usize = 512 << 10;

/// Size of the frames of a larger body, but for its end.
const FRAME: usize = 64 << 10;

/// A body of known length, or a stream.
pub(crate) struct ResponseBody {
    content: Content,
    timer: Arc<RequestTimer>,
    _permit: Option<RequestPermit>,
}

enum Content {
    /// The rest, and whether others have a turn before it.
    Bytes(Bytes, bool),
    Events(Events),
}

/// The rest of an event stream.
struct Events {
    rest: EventStream,
    /// The interval of heartbeats, and the time of the next one.
    heartbeat: (Duration, Pin<Box<Sleep>>),
    /// Resolves when the server stops.
    stopped: BoxFuture<'static, ()>,
    share: Option<Share>,
    /// The bytes of the last event: hyper has sent nearly all of it when it takes the next one.
    held: Option<Held>,
    is_over: bool,
}

/// Prepares a response for hyper; `permit` is released and the timer restarted after it.
pub(crate) fn with_permit(
    response: Response<Bytes>,
    permit: Option<RequestPermit>,
    timer: &Arc<RequestTimer>,
    limits: &Limits,
) -> Response<ResponseBody> {
    timer.send(response.body().len(), limits);
    response.map(|body| ResponseBody::new(Content::Bytes(body, false), permit, timer))
}

/// As [`with_permit`] for an event stream, which ends when `stopped` resolves, or before an event for which its client
/// has no room: it resumes after the last one. A comment follows after `heartbeat` without an event.
pub(crate) fn streaming(
    response: Response<EventStream>,
    permit: RequestPermit,
    timer: &Arc<RequestTimer>,
    pools: &Arc<Pools>,
    heartbeat: Duration,
    stopped: BoxFuture<'static, ()>,
) -> Response<ResponseBody> {
    response.map(|events| {
        let heartbeat = (heartbeat, Box::pin(sleep(heartbeat)));
        let share = Share::from_permit(&permit, pools);
        let events = Events { rest: events, heartbeat, stopped, share, held: None, is_over: false };
        ResponseBody::new(Content::Events(events), Some(permit), timer)
    })
}

impl ResponseBody {
    fn new(content: Content, permit: Option<RequestPermit>, timer: &Arc<RequestTimer>) -> Self {
        Self { content, timer: Arc::clone(timer), _permit: permit }
    }
}

impl Events {
    /// The next frame: an event or a heartbeat.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.is_over || self.stopped.as_mut().poll(context).is_ready() {
            self.is_over = true;
            return Poll::Ready(None);
        }
        let (every, next) = &mut self.heartbeat;
        let frame = match self.rest.as_mut().poll_next(context) {
            Poll::Ready(Some(event)) => {
                self.held = None;
                match self.share.as_ref().map_or(Ok(None), |share| share.hold(event.frame().len())) {
                    Ok(held) => self.held = held,
                    Err(error) => {
                        tracing::debug!(%error, "a stream was ended before a large event");
                        self.is_over = true;
                        return Poll::Ready(None);
                    }
                }
                event.frame().clone()
            }
            Poll::Ready(None) => {
                self.is_over = true;
                return Poll::Ready(None);
            }
            Poll::Pending if next.as_mut().poll(context).is_ready() => HEARTBEAT,
            Poll::Pending => return Poll::Pending,
        };
        next.as_mut().reset(Instant::now() + *every);
        Poll::Ready(Some(frame))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match &mut self.content {
            Content::Bytes(_, yields) if *yields => {
                *yields = false;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            Content::Bytes(rest, yields) => {
                let len = if rest.len() > WHOLE { FRAME } else { rest.len() };
                *yields = len < rest.len();
                Poll::Ready(Some(rest.split_to(len)).filter(|frame| !frame.is_empty()))
            }
            Content::Events(events) => events.poll_next(context),
        };
        frame.map(|frame| frame.map(|frame| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Bytes(rest, _) => rest.is_empty(),
            Content::Events(events) => events.is_over,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Bytes(rest, _) => SizeHint::with_exact(u64::try_from(rest.len()).unwrap_or(u64::MAX)),
            Content::Events(_) => SizeHint::default(),
        }
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.timer.end();
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use http_body_util::BodyExt as _;

    use super::*;

    #[tokio::test]
    async fn a_large_body_yields_between_its_frames_and_a_page_is_one() {
        let timer = Arc::new(RequestTimer::new());
        let response =
            |len| with_permit(Response::new(vec![7; len].into()), None, &timer, &Limits::default());
        let mut body = response(WHOLE + FRAME).into_body();
        let mut poll = || Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
        let kinds = [(); 4].map(|()| poll().map(|frame| frame.is_some()));
        assert_eq!(kinds, [Poll::Ready(true), Poll::Pending, Poll::Ready(true), Poll::Ready(false)]);
        let whole = response(2 * WHOLE + 1).into_body().collect().await.unwrap();
        assert_eq!(whole.to_bytes().len(), 2 * WHOLE + 1);
        let mut page = response(WHOLE).into_body();
        assert_eq!(page.frame().await.map(|frame| frame.unwrap().into_data().unwrap().len()), Some(WHOLE));
        assert!(page.is_end_stream());
    }
}
