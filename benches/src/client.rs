//! A minimal HTTP/1.1 client, so that measurements show the cost of the server.
//!
//! # Invariants
//!
//! - One request is in flight per connection, and a response is read to its last byte.
//! - Any response but a 200 with a `Content-Length` is an error.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

/// Initial capacity for a response: a page of 100 transactions fits.
const ROOM: usize = 1 << 20;

/// Maximum time without a byte before a server counts as failed.
const PATIENCE: Duration = Duration::from_secs(30);

/// A keep-alive connection.
pub struct Client {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Client {
    /// Connects to `server`.
    pub fn connect(server: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(server).context("connecting")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Self { stream, buffer: vec![0; ROOM] })
    }

    /// Sends `request` and returns the body of its response.
    pub fn ask(&mut self, request: &[u8]) -> Result<&[u8]> {
        self.send(request)?;
        self.receive()
    }

    fn send(&mut self, request: &[u8]) -> Result<()> {
        self.stream.write_all(request).context("sending a request")
    }

    fn receive(&mut self) -> Result<&[u8]> {
        let mut filled = 0;
        let (head, body) = loop {
            let read = self.stream.read(&mut self.buffer[filled..]).context("reading an answer")?;
            ensure!(read > 0, "the server closed the connection");
            filled += read;
            if let Some(lengths) = lengths(&self.buffer[..filled])? {
                break lengths;
            }
            ensure!(filled < self.buffer.len(), "a head of {filled} bytes");
        };
        let end = head + body;
        ensure!(filled <= end, "{} bytes more than announced", filled - end);
        if self.buffer.len() < end {
            self.buffer.resize(end, 0);
        }
        self.stream.read_exact(&mut self.buffer[filled..end]).context("reading an answer's body")?;
        Ok(&self.buffer[head..end])
    }
}

/// Lengths of a response's head and body; `None` until the head is complete.
fn lengths(answer: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(end) = answer.windows(4).position(|four| four == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&answer[..end]).context("the head of an answer")?;
    if !head.starts_with("HTTP/1.1 200 ") {
        bail!("the answer is {}", String::from_utf8_lossy(&answer[..answer.len().min(1_000)]));
    }
    let mut fields = head.lines().filter_map(|line| line.split_once(':'));
    let length = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let (_, length) = length.with_context(|| format!("no Content-Length in {head}"))?;
    Ok(Some((end + 4, length.trim().parse().with_context(|| format!("Content-Length: {length}"))?)))
}

/// The bytes of `GET target`.
pub fn get(target: &str) -> Vec<u8> {
    format!("GET {target} HTTP/1.1\r\nhost: bench\r\n\r\n").into_bytes()
}

/// Figures of a closed loop.
#[derive(Clone, Debug)]
pub struct Load {
    /// From the first request to the last response.
    pub elapsed: Duration,
    /// Bytes of all bodies.
    pub body_bytes: u64,
    /// Latencies, sorted. All connections share one thread, so a response that is ready waits until earlier ones are
    /// read: an upper bound.
    pub waits: Vec<Duration>,
}

/// Connections that always have a request in flight; kept open, so that TCP slow start is over.
pub struct ClosedLoop {
    clients: Vec<Client>,
}

impl ClosedLoop {
    /// Opens `connections` to `server`.
    pub fn connect(server: SocketAddr, connections: usize) -> Result<Self> {
        let clients = (0..connections).map(|_| Client::connect(server)).collect::<Result<_>>()?;
        Ok(Self { clients })
    }

    /// Sends `count` requests; each connection sends its next request after its response. `requests` are taken in turn,
    /// starting at `first`.
    pub fn run(&mut self, requests: &[Vec<u8>], first: usize, count: usize) -> Result<Load> {
        let mut next = requests.iter().cycle().skip(first % requests.len().max(1)).take(count);
        let mut load = Load { elapsed: Duration::ZERO, body_bytes: 0, waits: Vec::with_capacity(count) };
        let mut flying = VecDeque::with_capacity(self.clients.len());
        let started = Instant::now();
        for (client, request) in self.clients.iter_mut().zip(next.by_ref()) {
            flying.push_back(Instant::now());
            client.send(request)?;
        }
        // Responses are read in the order of their requests, connection by connection.
        for turn in (0..self.clients.len()).cycle() {
            let Some(sent) = flying.pop_front() else { break };
            let client = &mut self.clients[turn];
            load.body_bytes += u64::try_from(client.receive()?.len())?;
            load.waits.push(sent.elapsed());
            if let Some(request) = next.next() {
                flying.push_back(Instant::now());
                client.send(request)?;
            }
        }
        load.elapsed = started.elapsed();
        load.waits.sort_unstable();
        Ok(load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bare::Bare;

    #[test]
    fn a_closed_loop_sends_the_given_number_of_requests() {
        let bare = Bare::start(2).unwrap();
        let requests = [get("/10"), get("/2000000")];
        let mut connections = ClosedLoop::connect(bare.address(), 3).unwrap();
        for _ in 0..2 {
            let load = connections.run(&requests, 1, 5).unwrap();
            assert_eq!((load.waits.len(), load.body_bytes), (5, 3 * 2_000_000 + 2 * 10));
            assert!(load.waits.last() <= Some(&load.elapsed));
        }
        assert_eq!(connections.run(&requests, 0, 2).unwrap().body_bytes, 2_000_010);
    }

    #[test]
    fn an_unsuccessful_response_is_an_error() {
        let bare = Bare::start(1).unwrap();
        let error = Client::connect(bare.address()).unwrap().ask(&get("/what")).unwrap_err();
        assert!(error.to_string().contains("404"), "{error}");
    }
}
