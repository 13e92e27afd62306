//! Routes over a socket, alone and beside clients of the longest list.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use benches::client::{Client, get};
use benches::{meter, report};
use routing_api::{Config, Service};
use web::app::App;
use web::limits::Limits;
use web::serve::server::{Server, default_workers};

use crate::random::{self, Dice, Size};

/// Connections that load the list all the time.
const CONNECTIONS: usize = 100;
/// Routes that are timed.
const ROUTES: usize = 3_000;
/// All assets, and the vouchers that no list has.
const LIST: &str = "/v2/fungible/assets?include_no_metadata_assets=true";
/// As many chains and assets as the public registries have, and a list as long.
const SIZE: Size = Size { chains: 260, assets: 6_000, ofts: 0, trouble: 0 };

/// The heads of the rows.
pub(crate) const HEADS: [&str; 8] = [
    "POST /v2/fungible/route over a socket, one connection",
    "requests/s",
    "p50 µs",
    "p99 µs",
    "max µs",
    "lists/s",
    "list MB",
    "memory MB",
];

/// Rows without and with the other clients, whose threads take processors, too.
pub(crate) fn rows() -> Result<Vec<Vec<String>>> {
    let parts = random::parts(1, SIZE);
    let made = random::build(&parts, 0, SIZE);
    let (mut dice, neighbours) = (Dice(3), random::neighbours(&parts));
    let bodies: Vec<_> =
        (0..ROUTES).map(|_| crate::body(&made, &random::request(&mut dice, &made, &neighbours))).collect();
    let dir = tempfile::tempdir()?;
    let service = Service::open(made.registry, dir.path(), Config::default(), "bench")?;
    let app = Arc::new(App::new(service, routing_api::ENDPOINTS)?);
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let head = http::Request::post("/v2/fungible/route").body(())?.into_parts().0;
    let found =
        |body: &String| runtime.block_on(app.respond_later(&head, body.as_bytes())).status().is_success();
    let requests: Vec<_> = bodies.iter().filter(|body| found(body)).map(|body| post(body)).collect();
    ensure!(!requests.is_empty(), "no route is found");

    let limits = Limits { requests_per_client: usize::MAX, ..Limits::default() };
    let server =
        Server::start(TcpListener::bind("127.0.0.1:0")?, Arc::clone(&app), limits, default_workers())?;
    let (address, mut rows) = (server.address(), Vec::new());
    let size = load(&mut TcpStream::connect(address)?)? >> 20;
    let mut routes = Client::connect(address)?;
    let alone = timed(&mut routes, &requests)?;
    rows.push(row("alone", alone, ["0".to_owned(), size.to_string(), megabytes(meter::resident()?)])?);

    let (stop, lists) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let loaders: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (stop, lists) = (Arc::clone(&stop), Arc::clone(&lists));
            std::thread::spawn(move || repeat(address, &stop, &lists))
        })
        .collect();
    while lists.load(Ordering::Relaxed) < u64::try_from(CONNECTIONS)? {
        ensure!(loaders.iter().all(|loader| !loader.is_finished()), "a client of the list failed");
        std::thread::yield_now();
    }
    let (before, started) = (lists.load(Ordering::Relaxed), Instant::now());
    let beside = timed(&mut routes, &requests)?;
    let rate = report::per_second(lists.load(Ordering::Relaxed) - before, started.elapsed());
    let memory = megabytes(meter::resident()?);
    stop.store(true, Ordering::Relaxed);
    for loader in loaders {
        loader.join().map_err(|_| anyhow::anyhow!("a client of the list panicked"))??;
    }
    let name = format!("beside {CONNECTIONS} connections on the longest list");
    rows.push(row(&name, beside, [format!("{rate:.0}"), size.to_string(), memory])?);
    Ok(rows)
}

fn row(name: &str, mut times: Vec<Duration>, rest: [String; 3]) -> Result<Vec<String>> {
    let sum: Duration = times.iter().sum();
    times.sort_unstable();
    let rate = report::per_second(u64::try_from(times.len())?, sum);
    let quantiles = [crate::at(&times, 500)?, crate::at(&times, 990)?, crate::at(&times, 1_000)?];
    Ok([name.to_owned(), format!("{rate:.0}")].into_iter().chain(quantiles).chain(rest).collect())
}

fn timed(routes: &mut Client, requests: &[Vec<u8>]) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(ROUTES);
    for request in requests.iter().cycle().take(ROUTES) {
        let started = Instant::now();
        routes.ask(request)?;
        times.push(started.elapsed());
    }
    Ok(times)
}

fn repeat(address: SocketAddr, stop: &AtomicBool, lists: &AtomicU64) -> Result<()> {
    let mut stream = TcpStream::connect(address)?;
    while !stop.load(Ordering::Relaxed) {
        load(&mut stream)?;
        lists.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Loads the list without keeping it, and returns its length.
fn load(stream: &mut TcpStream) -> Result<usize> {
    stream.write_all(&get(LIST))?;
    let (mut buffer, mut filled) = (vec![0; 64 << 10], 0);
    let (mut left, length) = loop {
        let read = stream.read(&mut buffer[filled..])?;
        ensure!(read > 0, "the server closed the connection");
        filled += read;
        let Some(end) = buffer[..filled].windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = std::str::from_utf8(&buffer[..end])?;
        if !head.starts_with("HTTP/1.1 200 ") {
            bail!("the list: {head}");
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("no content-length")?.trim().parse()?;
        break (end + 4 + length - filled, length);
    };
    while left > 0 {
        let most = buffer.len().min(left);
        let read = stream.read(&mut buffer[..most])?;
        ensure!(read > 0, "the server closed the connection");
        left -= read;
    }
    Ok(length)
}

fn post(body: &str) -> Vec<u8> {
    let length = body.len();
    let head = "POST /v2/fungible/route HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json";
    format!("{head}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

fn megabytes(bytes: u64) -> String {
    (bytes >> 20).to_string()
}
