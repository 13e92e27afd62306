//! A client that sends the bytes of a test unchanged.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Far longer than any reply takes here: only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub(crate) struct Socket {
    stream: TcpStream,
    unread: Vec<u8>,
}

/// One reply as received.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    /// Names in lower case, in the received order.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

#[allow(dead_code, reason = "every test file uses some of these")]
impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

#[allow(dead_code, reason = "every test file uses some of these")]
impl Socket {
    pub(crate) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, unread: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self
    }

    /// Sends `GET target` and reads the reply.
    pub(crate) fn get(&mut self, target: &str) -> Response {
        self.request("GET", target, "")
    }

    /// Sends a request without a body and reads the reply.
    pub(crate) fn request(&mut self, method: &str, target: &str, headers: &str) -> Response {
        self.send(format!("{method} {target} HTTP/1.1\r\nhost: here\r\n{headers}\r\n"));
        self.response(method == "HEAD")
    }

    /// Reads one reply; that to a `HEAD` has no body.
    pub(crate) fn response(&mut self, head_only: bool) -> Response {
        let mut response = self.head();
        let len = response.header("content-length").map_or(0, |len| len.parse().unwrap());
        if !head_only && !matches!(response.status, 204 | 304) {
            while self.unread.len() < len {
                assert!(self.fill() > 0, "the body ends after {} of {len} bytes", self.unread.len());
            }
            response.body = self.unread.drain(..len).collect();
        }
        response
    }

    /// Reads the head of a reply.
    pub(crate) fn head(&mut self) -> Response {
        let end = loop {
            if let Some(end) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            assert!(self.fill() > 0, "closed in the head: {:?}", String::from_utf8_lossy(&self.unread));
        };
        let head = String::from_utf8(self.unread.drain(..end).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().strip_prefix("HTTP/1.1 ").unwrap()[..3].parse().unwrap();
        let headers = lines.map(|line| line.split_once(": ").unwrap());
        let headers = headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
        Response { status, headers, body: Vec::new() }
    }

    /// The bytes up to and including `text`.
    pub(crate) fn until(&mut self, text: &str) -> String {
        let end = loop {
            if let Some(at) = self.unread.windows(text.len()).position(|part| part == text.as_bytes()) {
                break at + text.len();
            }
            assert!(self.fill() > 0, "no {text:?} in {:?}", String::from_utf8_lossy(&self.unread));
        };
        String::from_utf8(self.unread.drain(..end).collect()).unwrap()
    }

    /// All bytes until the server closes the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        while self.fill() > 0 {}
        std::mem::take(&mut self.unread)
    }

    /// True if any bytes have arrived.
    pub(crate) fn has_answer(&mut self) -> bool {
        self.stream.set_nonblocking(true).unwrap();
        let peeked = self.stream.peek(&mut [0]);
        self.stream.set_nonblocking(false).unwrap();
        !matches!(peeked, Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Number of bytes read; 0 at the end, which may be a reset.
    fn fill(&mut self) -> usize {
        let mut buffer = [0; 16 << 10];
        match self.stream.read(&mut buffer) {
            Ok(n) => {
                self.unread.extend_from_slice(&buffer[..n]);
                n
            }
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => 0,
            Err(error) => panic!("the server neither answers nor closes: {error}"),
        }
    }
}
