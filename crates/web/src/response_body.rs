//! The response body of every server: bytes in frames of bounded size, with the request permit.
//!
//! # Invariants
//! * The permit is held until hyper has the last frame. hyper takes a frame only when it has sent nearly all of the
//!   previous one, so a client that does not read its response holds its permit.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Response;
use hyper::body::{Body, Frame, SizeHint};

use crate::concurrency_limit::RequestPermit;
use crate::request_timer::RequestTimer;

/// Maximum size of a frame: most responses are one frame. At most this and hyper's buffer are unsent without a permit.
const FRAME: usize = 256 << 10;

/// A body whose length is known.
pub(crate) struct ResponseBody {
    rest: Bytes,
    timer: Arc<RequestTimer>,
    _permit: Option<RequestPermit>,
}

/// Prepares a response for hyper; `permit` is released and the timer restarted after it.
pub(crate) fn with_permit(
    response: Response<Bytes>,
    permit: Option<RequestPermit>,
    timer: &Arc<RequestTimer>,
) -> Response<ResponseBody> {
    response.map(|rest| ResponseBody { rest, timer: Arc::clone(timer), _permit: permit })
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let len = self.rest.len().min(FRAME);
        let frame = self.rest.split_to(len);
        Poll::Ready((!frame.is_empty()).then(|| Ok(Frame::data(frame))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(u64::try_from(self.rest.len()).unwrap_or(u64::MAX))
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.timer.end();
    }
}
