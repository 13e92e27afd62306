//! An HTTP/1.1 server that plays a script.
//!
//! It serves a real socket, so that truncated bodies, wrong lengths and closed connections are real; it stores the
//! requests in order.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use node::{Limits, Url};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Barrier, Notify};

use crate::feed::Feed;

/// The response to one request.
#[derive(Clone)]
pub(crate) enum Play {
    /// A status, further header lines and a body. `%ID%` in the body becomes the request's id.
    Answer(u16, &'static str, Vec<u8>),
    /// A body in chunks, without a length.
    Chunked(Vec<u8>),
    /// The head promises so many bytes more than the body has; then the connection is closed.
    Cut(usize, Vec<u8>),
    /// The connection is closed without a reply.
    Close,
    /// No reply, ever.
    Hang,
    /// An empty JSON object once so many requests are pending.
    Together(Arc<Barrier>),
    /// The same reply as the inner one, once the test allows it.
    Later(Arc<Notify>, Box<Play>),
    /// A websocket.
    Websocket(Feed),
}

/// One request as received.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Method and path with query.
    pub(crate) line: String,
    /// All header lines, lower-case.
    pub(crate) headers: String,
    pub(crate) body: String,
    /// The key of a websocket, else empty.
    pub(crate) key: String,
}

impl Asked {
    /// Message of a client on a websocket.
    pub(crate) fn frame(kind: &str, text: &str) -> Self {
        let (line, body) = (format!("WS {kind}"), text.to_owned());
        Self { line, headers: String::new(), body, key: String::new() }
    }
}

/// A running server. Ends with the test's runtime.
pub(crate) struct Server {
    pub(crate) url: Url,
    state: Arc<State>,
}

type Script = dyn Fn(usize, &Asked) -> Play + Send + Sync;

struct State {
    script: Box<Script>,
    asked: Mutex<Vec<Asked>>,
    /// Pending requests now, and their maximum so far.
    open: Mutex<(usize, usize)>,
    connections: AtomicUsize,
}

impl Server {
    /// Calls `script` for each request, with the request's number from 0 on.
    pub(crate) async fn play(script: impl Fn(usize, &Asked) -> Play + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let state = Arc::new(State {
            script: Box::new(script),
            asked: Mutex::default(),
            open: Mutex::default(),
            connections: AtomicUsize::new(0),
        });
        let shared = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                shared.connections.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(serve(socket, Arc::clone(&shared)));
            }
        });
        Self { url, state }
    }

    /// Gives each request the next of the list, and the last one after that.
    pub(crate) async fn in_turn(plays: Vec<Play>) -> Self {
        Self::play(move |number, _| plays[number.min(plays.len() - 1)].clone()).await
    }

    /// Gives every request the same reply.
    pub(crate) async fn always(play: Play) -> Self {
        Self::in_turn(vec![play]).await
    }

    /// The requests so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.state.asked.lock().unwrap().clone()
    }

    /// Number of requests so far.
    pub(crate) fn count(&self) -> usize {
        self.state.asked.lock().unwrap().len()
    }

    /// Number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.state.connections.load(Ordering::Relaxed)
    }

    /// Maximum number of concurrently pending requests.
    pub(crate) fn most_at_once(&self) -> usize {
        self.state.open.lock().unwrap().1
    }
}

/// An address without a server.
pub(crate) async fn nowhere() -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap()).parse().unwrap()
}

/// 200 with a JSON body.
pub(crate) fn json(body: &str) -> Play {
    Play::Answer(200, "content-type: application/json\r\n", body.into())
}

/// Another status with a JSON body.
pub(crate) fn fault(status: u16, body: &str) -> Play {
    Play::Answer(status, "content-type: application/json\r\n", body.into())
}

/// An envelope with a result, for GET (`id` −1) and POST alike.
pub(crate) fn result(result: &str) -> Play {
    json(&format!(r#"{{"jsonrpc":"2.0","id":%ID%,"result":{result}}}"#))
}

/// Limits that let a test fail fast.
pub(crate) fn limits() -> Limits {
    Limits { timeout: std::time::Duration::from_secs(10), ..Limits::default() }
}

async fn serve(mut socket: TcpStream, state: Arc<State>) {
    let mut buffer = Vec::new();
    while let Some(asked) = request(&mut socket, &mut buffer).await {
        let play = {
            let mut all = state.asked.lock().unwrap();
            all.push(asked.clone());
            (state.script)(all.len() - 1, &asked)
        };
        {
            let mut open = state.open.lock().unwrap();
            open.0 += 1;
            open.1 = open.1.max(open.0);
        }
        let play = match play {
            Play::Websocket(feed) => {
                state.open.lock().unwrap().0 -= 1;
                return feed.speak(socket, &asked, |reply| state.asked.lock().unwrap().push(reply)).await;
            }
            Play::Later(allowed, play) => {
                allowed.notified().await;
                *play
            }
            play => play,
        };
        let goes_on = answer(&mut socket, &asked, play, &state).await;
        if !goes_on {
            return;
        }
    }
}

async fn request(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Asked> {
    let end = loop {
        match buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            Some(end) => break end + 4,
            None if socket.read_buf(buffer).await.ok()? == 0 => return None,
            None => {}
        }
    };
    let head = String::from_utf8(buffer[..end].to_vec()).unwrap();
    let (line, headers) = head.split_once("\r\n").unwrap();
    let key = headers.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("sec-websocket-key").then(|| value.to_owned())
    });
    let headers = headers.to_lowercase();
    let length = headers.lines().find_map(|line| line.strip_prefix("content-length: "));
    let whole = end + length.map_or(0, |length| length.parse::<usize>().unwrap());
    while buffer.len() < whole {
        if socket.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(buffer[end..whole].to_vec()).unwrap();
    buffer.drain(..whole);
    Some(Asked {
        line: line.trim_end_matches(" HTTP/1.1").to_owned(),
        headers,
        body,
        key: key.unwrap_or_default(),
    })
}

/// True if the connection stays open.
async fn answer(socket: &mut TcpStream, asked: &Asked, play: Play, state: &State) -> bool {
    let bytes = match play {
        Play::Answer(status, headers, body) => {
            let body = with_id(body, asked);
            head(&format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n", body.len()), &body)
        }
        Play::Chunked(body) => {
            let mut text = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
            for chunk in body.chunks(1000) {
                text.extend(head(&format!("{:x}\r\n", chunk.len()), chunk));
                text.extend(b"\r\n");
            }
            head(std::str::from_utf8(&text).unwrap(), b"0\r\n\r\n")
        }
        Play::Cut(missing, body) => {
            let length = body.len() + missing;
            let cut = head(&format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n"), &body);
            socket.write_all(&cut).await.unwrap();
            return false;
        }
        Play::Close => return false,
        Play::Hang | Play::Websocket(_) | Play::Later(..) => return std::future::pending().await,
        Play::Together(barrier) => {
            barrier.wait().await;
            head("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n", b"{}")
        }
    };
    state.open.lock().unwrap().0 -= 1;
    // A client that has read enough may have disconnected.
    socket.write_all(&bytes).await.is_ok()
}

fn head(head: &str, body: &[u8]) -> Vec<u8> {
    [head.as_bytes(), body].concat()
}

fn with_id(body: Vec<u8>, asked: &Asked) -> Vec<u8> {
    const MARK: &[u8] = b"%ID%";
    let Some(place) = body.windows(MARK.len()).position(|w| w == MARK) else { return body };
    let question = serde_json::from_str::<Value>(&asked.body);
    let id = question.map_or_else(|_| "-1".to_owned(), |question| question["id"].to_string());
    [&body[..place], id.as_bytes(), &body[place + MARK.len()..]].concat()
}
