//! The programs of the measurement, as processes: an object store (versitygw), and `cairn` on either engine.

use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use benches::client::{Client, get};
use benches::meter;
use serde_json::Value;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(10);

/// A process that is killed when it is dropped.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The program that the variable `name` names.
fn program(name: &str) -> Result<PathBuf> {
    Ok(std::env::var_os(name).with_context(|| format!("{name} must name the program"))?.into())
}

/// An object store over a directory.
pub(crate) struct Gateway {
    _process: Killed,
    port: u16,
    objects: PathBuf,
}

const BUCKET: &str = "chains";

impl Gateway {
    pub(crate) fn start(dir: &Path) -> Result<Self> {
        let (objects, attributes) = (dir.join("objects"), dir.join("attributes"));
        std::fs::create_dir_all(objects.join(BUCKET))?;
        std::fs::create_dir(&attributes)?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let process = Command::new(program("VERSITYGW")?)
            .args(["--port", &format!("127.0.0.1:{port}"), "--access", "bench", "--secret", "bench-secret"])
            .args(["--region", "us-east-1", "--quiet", "--keep-alive", "posix", "--sidecar"])
            .args([&attributes, &objects])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let gateway = Self { _process: Killed(process), port, objects };
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(started.elapsed() < PATIENCE, "versitygw does not start");
            thread::sleep(Duration::from_millis(5));
        }
        Ok(gateway)
    }

    fn variables(&self) -> [(&'static str, String); 5] {
        [
            ("AWS_ENDPOINT", format!("http://127.0.0.1:{}", self.port)),
            ("AWS_ALLOW_HTTP", "true".to_owned()),
            ("AWS_ACCESS_KEY_ID", "bench".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "bench-secret".to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ]
    }

    /// Bytes of all objects.
    pub(crate) fn bytes(&self) -> Result<u64> {
        bytes_below(&self.objects)
    }
}

/// Bytes of the files in and below `dir`.
pub(crate) fn bytes_below(dir: &Path) -> Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let found = entry.metadata()?;
        bytes += if found.is_dir() { bytes_below(&entry.path())? } else { found.len() };
    }
    Ok(bytes)
}

/// Where the database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Engine {
    /// In a directory.
    RocksDb,
    /// In the gateway's bucket.
    SlateDb,
}

impl Engine {
    pub(crate) const BOTH: [Self; 2] = [Self::RocksDb, Self::SlateDb];
}

/// A running `cairn`.
pub(crate) struct Cairn {
    process: Killed,
    lines: Receiver<Value>,
    metrics: SocketAddr,
}

/// Counts of requests to the object store.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Requests {
    pub(crate) gets: u64,
    pub(crate) got_bytes: u64,
    pub(crate) puts: u64,
    pub(crate) put_bytes: u64,
    pub(crate) lists: u64,
}

impl Requests {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            gets: self.gets - before.gets,
            got_bytes: self.got_bytes - before.got_bytes,
            puts: self.puts - before.puts,
            put_bytes: self.put_bytes - before.put_bytes,
            lists: self.lists - before.lists,
        }
    }
}

impl Cairn {
    /// `cairn` with `args`.
    pub(crate) fn start(args: &[&str], gateway: &Gateway) -> Result<Self> {
        let mut process = Command::new(program("CAIRN")?)
            .args(args)
            .args(["--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0", "--log-format", "json"])
            .envs(gateway.variables())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let log = BufReader::new(process.stderr.take().context("no standard error")?);
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                // The last receiver may be gone: the log is read to its end all the same.
                drop(sender.send(serde_json::from_str(&line).unwrap_or(Value::String(line))));
            }
        });
        let mut cairn = Self { process: Killed(process), lines, metrics: ([127, 0, 0, 1], 0).into() };
        cairn.metrics = cairn.address("metrics")?;
        Ok(cairn)
    }

    /// Waits for the next log line with this message.
    pub(crate) fn logged(&self, message: &str) -> Result<Value> {
        let mut seen = Vec::new();
        loop {
            let line = self.lines.recv_timeout(PATIENCE);
            let line = line.with_context(|| format!("no line `{message}` after {seen:?}"))?;
            if line["message"] == message {
                return Ok(line);
            }
            seen.push(line);
        }
    }

    /// The address in the next log line with this message.
    fn address(&self, message: &str) -> Result<SocketAddr> {
        let line = self.logged(message)?;
        let url = line["url"].as_str().context("the line has no URL")?;
        let host = url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        host.parse().with_context(|| url.to_owned())
    }

    /// Its address, once it serves a database.
    pub(crate) fn serving(&self) -> Result<SocketAddr> {
        self.address("serving")
    }

    /// Counts of its requests to the object store.
    pub(crate) fn requests(&self) -> Result<Requests> {
        let mut client = Client::connect(self.metrics)?;
        let text = std::str::from_utf8(client.ask(&get("/metrics"))?)?.to_owned();
        let value = |name: &str| -> Result<u64> {
            match text.lines().find_map(|line| line.strip_prefix(name)) {
                Some(value) => value.trim().parse().with_context(|| format!("{name} is `{value}`")),
                None => Ok(0),
            }
        };
        Ok(Requests {
            gets: value("cairn_object_store_requests_total{request=\"get\"}")?,
            got_bytes: value("cairn_object_store_bytes_total{direction=\"read\"}")?,
            puts: value("cairn_object_store_requests_total{request=\"put\"}")?,
            put_bytes: value("cairn_object_store_bytes_total{direction=\"written\"}")?,
            lists: value("cairn_object_store_requests_total{request=\"list\"}")?,
        })
    }

    /// CPU time since its start.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        meter::process_cpu(self.process.0.id())
    }

    /// Peak memory since its start.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        meter::peak_resident_of(self.process.0.id())
    }

    /// Asks it to stop, and waits for its end.
    pub(crate) fn stop(mut self) -> Result<()> {
        let id = self.process.0.id().to_string();
        ensure!(Command::new("kill").args(["-TERM", &id]).status()?.success(), "kill -TERM {id} failed");
        let status = self.process.0.wait()?;
        ensure!(status.success(), "cairn ended with {status}");
        Ok(())
    }
}

/// What `cairn` with `args` prints.
pub(crate) fn printed(args: &[&str], gateway: &Gateway) -> Result<String> {
    let output = Command::new(program("CAIRN")?).args(args).envs(gateway.variables()).output()?;
    ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}
