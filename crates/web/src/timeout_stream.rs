//! A client socket with read, idle and write timeouts, JSON errors for malformed heads, and a lingering close.
//!
//! * Timeouts close a connection whose head takes too long, that stays idle, or whose client does not read the
//!   response.
//!   (hyper's own head timeout also runs between two requests, so it cannot be shorter than the keep-alive time.)
//! * hyper answers a head that it cannot parse with an empty response. This stream replaces it by the JSON body of
//!   every other error. It recognises hyper's response because it is written while no request is in progress.
//! * After an error response the stream reads a little longer (lingering close, RFC 9112 §9.6): an immediate close
//!   makes the client's kernel discard the response if the client is still sending.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::StatusCode;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::lazy_timeout::LazyTimeout;
use crate::limits::Limits;
use crate::refusal::Refusal;
use crate::response_body::ConnState;

/// Time and byte limits of a lingering close.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 1 << 20;

/// Bytes of a request line besides its target: `OPTIONS  HTTP/1.1`, the line end, and some reserve.
pub(crate) const REQUEST_LINE: usize = 64;

/// A socket with timeouts; see the module documentation.
pub(crate) struct TimeoutStream {
    stream: TcpStream,
    conn: Arc<ConnState>,
    limits: Arc<Limits>,
    /// Empty, or a header line with its line end, for every error response written here.
    extra_header: &'static str,
    read_state: ReadState,
    /// Bytes received of the request line since the last response, and whether it is complete.
    first_line: usize,
    line_seen: bool,
    reading: LazyTimeout,
    writing: LazyTimeout,
    /// Unsent bytes of an error response written here.
    refusal: Bytes,
    lingered: Option<usize>,
}

#[derive(Clone, Copy)]
enum ReadState {
    /// The rest of a head, or the first head of the connection.
    Head,
    /// The next request, if any.
    Request,
}

impl TimeoutStream {
    pub(crate) fn new(
        stream: TcpStream,
        conn: Arc<ConnState>,
        limits: Arc<Limits>,
        extra_header: &'static str,
    ) -> Self {
        Self {
            stream,
            conn,
            limits,
            extra_header,
            read_state: ReadState::Head,
            first_line: 0,
            line_seen: false,
            reading: LazyTimeout::default(),
            writing: LazyTimeout::default(),
            refusal: Bytes::new(),
            lingered: None,
        }
    }

    fn received(&mut self, bytes: &[u8]) {
        if bytes.is_empty() || !self.conn.is_idle() {
            return;
        }
        if let ReadState::Request = self.read_state {
            self.read_state = ReadState::Head;
            self.reading.clear();
        }
        if !self.line_seen {
            let end = memchr::memchr(b'\n', bytes);
            self.line_seen = end.is_some();
            self.first_line += end.unwrap_or(bytes.len());
        }
    }

    /// Called when no bytes are available: pending, end of stream (idle connection), or a timeout error.
    fn poll_read_timeout(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.conn.is_idle() {
            return Poll::Pending;
        }
        match self.read_state {
            ReadState::Head => {
                ready!(self.reading.poll(cx, self.limits.head_read));
                Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the head of a request took too long",
                )))
            }
            ReadState::Request => {
                ready!(self.reading.poll(cx, self.limits.keep_alive));
                Poll::Ready(Ok(()))
            }
        }
    }

    /// Limits how long a write may be pending.
    fn poll_write_timeout(
        &mut self,
        cx: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        match written {
            Poll::Ready(written) => {
                self.writing.clear();
                Poll::Ready(written)
            }
            Poll::Pending => {
                ready!(self.writing.poll(cx, self.limits.write_stall));
                Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the client does not read the response",
                )))
            }
        }
    }

    /// Replaces an error response that hyper generated.
    fn refuse(&mut self, from_hyper: &[u8]) {
        self.conn.linger();
        let line_is_short = self.line_seen && self.first_line <= self.limits.target + REQUEST_LINE;
        self.refusal = refusal(from_hyper, &self.limits, line_is_short, self.extra_header);
    }

    fn poll_write_error(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.refusal.is_empty() {
            let written = Pin::new(&mut self.stream).poll_write(cx, &self.refusal);
            let n = ready!(self.poll_write_timeout(cx, written))?;
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.refusal.advance(n);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut discarded = [0; 4096];
        while let Some(read) = self.lingered.filter(|read| *read < LINGER_BYTES) {
            let mut buffer = ReadBuf::new(&mut discarded);
            match Pin::new(&mut self.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => {
                    self.lingered = Some(read + buffer.filled().len());
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.reading.poll(cx, LINGER),
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for TimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        match Pin::new(&mut self.stream).poll_read(cx, buffer) {
            Poll::Pending => self.poll_read_timeout(cx),
            Poll::Ready(read) => {
                self.received(&buffer.filled()[before..]);
                Poll::Ready(read)
            }
        }
    }
}

impl AsyncWrite for TimeoutStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.conn.is_idle() {
            self.refuse(bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.poll_write_timeout(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.conn.is_idle() {
            let bytes = slices.iter().flat_map(|slice| slice.iter().copied()).collect::<Vec<_>>();
            self.refuse(&bytes);
            return Poll::Ready(Ok(bytes.len()));
        }
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.poll_write_timeout(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_error(cx))?;
        ready!(Pin::new(&mut self.stream).poll_flush(cx))?;
        if self.conn.flush() {
            self.read_state = ReadState::Request;
            self.first_line = 0;
            self.line_seen = false;
            self.reading.clear();
            // A read that hyper began before the response was not an idle wait; restart it as one.
            if self.poll_read_timeout(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write_error(cx))?;
        if self.lingered.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(cx))?;
            self.reading.clear();
            self.lingered = Some(0);
        }
        if self.conn.lingers() {
            ready!(self.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}

/// hyper's empty error response with a JSON body; its other headers (`date`, `connection: close`) stay.
fn refusal(from_hyper: &[u8], limits: &Limits, line_is_short: bool, extra_header: &str) -> Bytes {
    let head = String::from_utf8_lossy(from_hyper);
    let status = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(StatusCode::BAD_REQUEST);
    let (status, message) = match status {
        // hyper limits the whole head: unless the request line is short, the target is too long.
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE if line_is_short => (status, headers_too_large(limits)),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE | StatusCode::URI_TOO_LONG => {
            (StatusCode::URI_TOO_LONG, target_too_long(limits))
        }
        _ => (status, "the request is not HTTP/1.1 (RFC 9112)".to_owned()),
    };
    let body = Refusal::new(status, message).body();
    let kept: String = head
        .split_inclusive("\r\n")
        .skip(1)
        .filter(|line| *line != "\r\n" && !line.starts_with("content-length:"))
        .collect();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\n{kept}{extra_header}cache-control: no-store\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    answer.extend_from_slice(&body);
    answer.into()
}

/// The message of a 414.
pub(crate) fn target_too_long(limits: &Limits) -> String {
    format!("the request target is over {} bytes", limits.target)
}

/// The message of a 431.
pub(crate) fn headers_too_large(limits: &Limits) -> String {
    format!("the request headers are over {} bytes or over 100 lines", limits.headers)
}
