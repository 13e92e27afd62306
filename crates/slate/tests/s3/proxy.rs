//! A proxy before the gateway that breaks some replies.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The status, without passing the request on.
    Status(u16),
    /// The request is passed on; its reply is lost and the connection closed.
    LostAnswer,
    /// Half of the reply, then the end of the connection.
    HalfAnswer,
    /// The reply, after this time.
    Late(Duration),
}

/// A proxy at a port of its own.
pub(crate) struct Proxy {
    pub(crate) port: u16,
    plan: Arc<Plan>,
}

struct Plan {
    upstream: u16,
    /// A fault hits each request whose number is a multiple of this; 0 for none.
    every: AtomicU64,
    requests: AtomicU64,
    faults: Vec<Fault>,
    hits: AtomicU64,
}

impl Proxy {
    pub(crate) fn start(upstream: u16, faults: &[Fault]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let zero = AtomicU64::default;
        let plan = Plan { upstream, every: zero(), requests: zero(), faults: faults.to_vec(), hits: zero() };
        let plan = Arc::new(plan);
        let served = Arc::clone(&plan);
        thread::spawn(move || {
            for client in listener.incoming() {
                let plan = Arc::clone(&served);
                // A connection that breaks is the client's concern.
                thread::spawn(move || drop(client.and_then(|client| serve(client, &plan))));
            }
        });
        Self { port, plan }
    }

    /// From now on a fault hits each `every`th request; none with 0.
    pub(crate) fn break_each(&self, every: u64) {
        self.plan.every.store(every, Ordering::Relaxed);
    }

    /// Number of requests that were hit.
    pub(crate) fn hits(&self) -> u64 {
        self.plan.hits.load(Ordering::Relaxed)
    }
}

/// A head, up to its empty line, and the length of its body.
fn head(stream: &mut impl BufRead) -> std::io::Result<(Vec<u8>, usize)> {
    let (mut head, mut length) = (Vec::new(), 0);
    loop {
        let start = head.len();
        if stream.read_until(b'\n', &mut head)? == 0 {
            return Ok((Vec::new(), 0));
        }
        let line = String::from_utf8_lossy(&head[start..]).to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        assert!(!line.starts_with("transfer-encoding: chunked"), "the proxy knows no chunks");
        if line.trim().is_empty() {
            return Ok((head, length));
        }
    }
}

fn body(stream: &mut impl Read, length: usize) -> std::io::Result<Vec<u8>> {
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    Ok(body)
}

fn serve(client: TcpStream, plan: &Plan) -> std::io::Result<()> {
    client.set_nodelay(true)?;
    let upstream = TcpStream::connect(("127.0.0.1", plan.upstream))?;
    upstream.set_nodelay(true)?;
    let (mut to_client, mut from_client) = (client.try_clone()?, BufReader::new(client));
    let (mut to_server, mut from_server) = (upstream.try_clone()?, BufReader::new(upstream));
    loop {
        let (request, length) = head(&mut from_client)?;
        if request.is_empty() {
            return Ok(());
        }
        let sent = body(&mut from_client, length)?;
        let number = plan.requests.fetch_add(1, Ordering::Relaxed);
        let every = plan.every.load(Ordering::Relaxed);
        let fault = if every > 0 && number.is_multiple_of(every) {
            let hit = plan.hits.fetch_add(1, Ordering::Relaxed);
            Some(plan.faults[usize::try_from(hit).unwrap() % plan.faults.len()])
        } else {
            None
        };
        if let Some(Fault::Status(status)) = fault {
            write!(to_client, "HTTP/1.1 {status} Broken\r\ncontent-length: 0\r\n\r\n")?;
            continue;
        }
        to_server.write_all(&[request.as_slice(), &sent].concat())?;
        let (answer, length) = head(&mut from_server)?;
        let is_head = request.starts_with(b"HEAD");
        let content = body(&mut from_server, if is_head { 0 } else { length })?;
        match fault {
            Some(Fault::LostAnswer) => return Ok(()),
            Some(Fault::HalfAnswer) => {
                let whole = [answer, content].concat();
                return to_client.write_all(&whole[..whole.len() / 2]);
            }
            Some(Fault::Late(time)) => thread::sleep(time),
            Some(Fault::Status(_)) | None => {}
        }
        to_client.write_all(&[answer, content].concat())?;
    }
}
