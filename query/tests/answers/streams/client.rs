//! A client of event streams over a socket, and its model of the rows.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use query::Indexer;
use serde_json::Value;
use web::app::App;
use web::limits::Limits;
use web::serve::server::Server;

/// Far longer than anything takes here: only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

/// Serves `indexer` to any number of clients of one address.
pub(crate) fn serve(indexer: Indexer) -> Server {
    let limits = Limits {
        connections_per_client: usize::MAX,
        streams: usize::MAX,
        streams_per_client: usize::MAX,
        ..Limits::default()
    };
    let app = Arc::new(App::new(indexer, query::ENDPOINTS).unwrap());
    Server::start(TcpListener::bind("127.0.0.1:0").unwrap(), app, limits, 4).unwrap()
}

/// An event as received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

impl Event {
    /// Adds one field of the event; true at its end.
    pub(crate) fn add(&mut self, line: &str) -> bool {
        match line.split_once(": ") {
            Some(("id", id)) => id.clone_into(&mut self.id),
            Some(("event", name)) => name.clone_into(&mut self.name),
            Some(("data", data)) => self.data = serde_json::from_str(data).unwrap(),
            _ => return line.is_empty() && !self.name.is_empty(),
        }
        false
    }

    pub(crate) fn empty() -> Self {
        Self { name: String::new(), id: String::new(), data: Value::Null }
    }
}

/// The request for a stream. In HTTP/1.0 the end of the body is that of the connection, so it has no chunks.
pub(crate) fn request(target: &str, id: Option<&str>) -> String {
    let id = id.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
    format!("GET {target} HTTP/1.0\r\n{id}\r\n")
}

/// An open stream.
#[derive(Debug)]
pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    /// Opens a stream; the status and the error if it is refused.
    pub(crate) fn open(at: SocketAddr, target: &str, id: Option<&str>) -> Result<Self, (u16, String)> {
        let mut stream = TcpStream::connect(at).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request(target, id).as_bytes()).unwrap();
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        let status: u16 = line["HTTP/1.0 ".len()..][..3].parse().unwrap();
        while !line.trim_end().is_empty() {
            line.clear();
            lines.read_line(&mut line).unwrap();
        }
        if status != 200 {
            let mut body = String::new();
            lines.read_to_string(&mut body).unwrap();
            return Err((status, body));
        }
        Ok(Self(lines))
    }

    /// The next event; `None` at the end.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let mut event = Event::empty();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if event.add(line.trim_end_matches('\n')) {
                return Some(event);
            }
        }
    }

    pub(crate) fn take(&mut self, n: usize) -> Vec<Event> {
        (0..n).map(|_| self.next().unwrap()).collect()
    }
}

/// The height that an event names.
pub(crate) fn height(event: &Event) -> u64 {
    event.data["height"].as_str().unwrap().parse().unwrap()
}

/// Applies an event to the rows of a client: a `reorg` takes back those above its height.
pub(crate) fn apply(rows: &mut Vec<Event>, event: Event) {
    match event.name.as_str() {
        "start" => {}
        "reorg" => rows.retain(|row| height(row) <= height(&event)),
        "block" | "tx" => rows.push(event),
        other => panic!("{other}: {event:?}"),
    }
}
