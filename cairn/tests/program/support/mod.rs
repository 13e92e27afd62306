//! The real program as a process: started, watched, signalled.
//!
//! Every wait is bounded and its failure message contains the awaited condition; a failed test leaves no process
//! behind.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails there")]
#![allow(dead_code, reason = "each test binary uses a part")]

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);

/// Poll interval of conditions without notification.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// A path in the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The program with `args`, in the repository's root and without the caller's settings.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cairn"));
    command.args(args).current_dir(repository("")).stdin(Stdio::null()).env_remove("COLUMNS");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("CAIRN_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the program to its end.
pub(crate) fn run(args: &[&str]) -> Output {
    command(args).output().unwrap()
}

/// Standard output of a run that must succeed.
pub(crate) fn printed(args: &[&str]) -> String {
    let output = run(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code and standard error of a run.
pub(crate) fn refused(args: &[&str]) -> (i32, String) {
    let output = run(args);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

/// A running program.
pub(crate) struct Cairn {
    child: Child,
    out: Lines,
    err: Lines,
}

impl Cairn {
    /// Starts it, with logs as JSON.
    pub(crate) fn start(args: &[&str]) -> Self {
        Self::spawn(command(args))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        command.args(["--log-format", "json"]);
        Self::spawn_as_is(command)
    }

    /// Starts a command that runs it, with its flags.
    pub(crate) fn spawn_as_is(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = Lines::of(child.stdout.take().unwrap());
        let err = Lines::of(child.stderr.take().unwrap());
        Self { child, out, err }
    }

    /// The next line on standard output that starts with `start`, without it.
    pub(crate) fn line(&mut self, start: &str) -> String {
        let line = self.out.find(|line| line.trim_start().starts_with(start));
        line.trim_start()[start.len()..].trim().to_owned()
    }

    /// The next line on standard output that contains `words`.
    pub(crate) fn printed_about(&mut self, words: &str) -> String {
        self.out.find(|line| line.contains(words))
    }

    /// The next log line with this message.
    pub(crate) fn logged(&mut self, message: &str) -> Value {
        let parse = |line: &str| serde_json::from_str::<Value>(line).unwrap_or_default();
        parse(&self.err.find(|line| parse(line)["message"] == message))
    }

    /// The next log line that contains `words`.
    pub(crate) fn logged_about(&mut self, words: &str) -> String {
        self.err.find(|line| line.contains(words))
    }

    /// Its address, once it serves.
    pub(crate) fn url(&mut self) -> String {
        self.logged("serving")["url"].as_str().unwrap().to_owned()
    }

    /// The process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent =
            Command::new("kill").args([&format!("-{name}"), &self.child.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// Waits for its end; returns the exit code and the duration.
    pub(crate) fn ended(mut self) -> (Option<i32>, Duration) {
        let start = Instant::now();
        let status = until("the process to end", || self.child.try_wait().unwrap());
        (status.code(), start.elapsed())
    }

    /// Waits for its end; returns its whole log.
    pub(crate) fn everything(self) -> String {
        self.ended_with_log().1
    }

    /// Waits for its end; returns the exit code and its whole log.
    pub(crate) fn ended_with_log(mut self) -> (Option<i32>, String) {
        let status = until("the process to end", || self.child.try_wait().unwrap());
        let rest: Vec<String> = self.err.lines.iter().collect();
        (status.code(), [std::mem::take(&mut self.err.seen), rest].concat().join("\n"))
    }

    /// Kills it, like a power failure, `after` its start or a little later.
    pub(crate) fn kill_after(self, after: Duration) {
        // Not a wait for a condition: the moment is the test's input.
        thread::sleep(after);
        self.kill();
    }

    /// Kills it, like a power failure.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Cairn {
    fn drop(&mut self) {
        // It has ended already, unless the test failed.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Lines of a process, as they arrive.
struct Lines {
    lines: Receiver<String>,
    seen: Vec<String>,
}

impl Lines {
    fn of(stream: impl Read + Send + 'static) -> Self {
        let (sender, lines) = channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { lines, seen: Vec::new() }
    }

    fn find(&mut self, wanted: impl Fn(&str) -> bool) -> String {
        let start = Instant::now();
        loop {
            match self.lines.recv_timeout(PATIENCE.saturating_sub(start.elapsed())) {
                Ok(line) if wanted(&line) => return line,
                Ok(line) => self.seen.push(line),
                Err(RecvTimeoutError::Timeout) => panic!("no such line in time: {:#?}", self.seen),
                Err(RecvTimeoutError::Disconnected) => {
                    panic!("no such line before the end: {:#?}", self.seen)
                }
            }
        }
    }
}

/// Polls until there is a value.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < PATIENCE, "waited {PATIENCE:?} for {what}");
        thread::sleep(LOOK_EVERY);
    }
}

/// `GET url`: status and JSON.
pub(crate) fn get(url: &str) -> (u16, Value) {
    let (status, body) = get_text(url);
    (status, serde_json::from_str(&body).unwrap())
}

/// `POST url` with a JSON body: status and JSON.
#[allow(dead_code, reason = "not every test file posts")]
pub(crate) fn post(url: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let length = body.len();
    let (status, answer) = exchange(
        "POST",
        url,
        &format!("content-type: application/json\r\ncontent-length: {length}\r\n"),
        &body,
    );
    (status, serde_json::from_str(&answer).unwrap())
}

/// `GET url`: status and body.
pub(crate) fn get_text(url: &str) -> (u16, String) {
    exchange("GET", url, "", "")
}

pub(crate) fn exchange(method: &str, url: &str, headers: &str, body: &str) -> (u16, String) {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "{method} /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n{body}")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    (status, body.to_owned())
}

/// A replayed recording and the flags to index it with.
pub(crate) struct Played {
    pub(crate) node: Cairn,
    recording: String,
    flags: Vec<String>,
}

impl Played {
    pub(crate) fn start(recording: &str, options: &[&str]) -> Self {
        Self::of(recording, &repository("testing/recordings").join(recording), options)
    }

    /// Replays the recording in `dir`, which has this name.
    pub(crate) fn of(recording: &str, dir: &Path, options: &[&str]) -> Self {
        let dir = dir.to_str().unwrap();
        let any = "127.0.0.1:0";
        let args = ["replay", dir, "--comet", any, "--rest", any, "--json-rpc", any, "--executor", any];
        let mut node = Cairn::start(&[&args, options].concat());
        let title = node.line(&format!("{recording}: chain "));
        let (chain, vm) = title.split_once(", vm ").unwrap();
        // `services` relies on the order: the chain first.
        let mut flags = vec!["--chain-id".to_owned(), chain.to_owned(), "--vm".to_owned(), vm.to_owned()];
        for service in ["comet", "rest"].into_iter().chain((vm == "evm").then_some("json-rpc")) {
            flags.extend([format!("--{service}"), node.line(service)]);
        }
        Self { node, recording: recording.to_owned(), flags }
    }

    /// Kills the node, like a power failure.
    pub(crate) fn end(&mut self) {
        self.node.child.kill().unwrap();
        self.node.child.wait().unwrap();
    }

    /// The node with other options at the same addresses.
    pub(crate) fn begin(&mut self, options: &[&str]) {
        let dir = format!("testing/recordings/{}", self.recording);
        let mut args = vec!["replay", &dir, "--executor", "127.0.0.1:0"];
        for pair in self.flags[4..].chunks(2) {
            args.extend([pair[0].as_str(), pair[1].strip_prefix("http://").unwrap()]);
        }
        if !self.flags.iter().any(|flag| flag == "--json-rpc") {
            args.extend(["--json-rpc", "127.0.0.1:0"]);
        }
        self.node = Cairn::start(&[&args, options].concat());
        self.node.line("comet");
    }

    /// `command` on `data`, of this chain, with a server on a free port.
    pub(crate) fn flags<'a>(&'a self, command: &'a str, data: &'a Path) -> Vec<&'a str> {
        let own = [command, "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0", "--poll", "10ms"];
        // A recording lacks the replies for samples.
        let own = own.into_iter().chain(["--reconcile", "0s"]);
        own.chain(self.flags.iter().map(String::as_str)).collect()
    }

    /// The chain's id.
    pub(crate) fn chain(&self) -> &str {
        &self.flags[1]
    }

    /// The flags for its services.
    pub(crate) fn services(&self) -> Vec<&str> {
        self.flags.iter().skip(4).map(String::as_str).collect()
    }

    /// Indexes all of it without interruption.
    pub(crate) fn index(&self, data: &Path) {
        let mut cairn = Cairn::start(&self.flags("ingest", data));
        cairn.logged("caught up");
        cairn.signal("TERM");
        assert_eq!(cairn.ended().0, Some(0));
    }
}

/// The digest of the database in `data`.
pub(crate) fn digest(data: &Path) -> String {
    let text = printed(&["db", "digest", "--data", data.to_str().unwrap()]);
    let digest = text.trim().strip_prefix("digest ").unwrap();
    assert_eq!(digest.len(), 64);
    digest.to_owned()
}

/// The last indexed height of the database in `data`; 0 where there is none yet.
pub(crate) fn height(data: &Path) -> u64 {
    let output = run(&["db", "info", "--data", data.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find_map(|line| line.trim().strip_prefix("blocks"));
    line.and_then(|rest| rest.split_whitespace().find_map(|word| word.trim_end_matches(',').parse().ok()))
        .unwrap_or(0)
}

/// Compares `text` with a file of the repository; `UPDATE_GOLDEN=1` writes it instead.
pub(crate) fn assert_golden(path: &str, text: &str) {
    let file = repository(path);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        return std::fs::write(file, text).unwrap();
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(golden == text, "{path} is stale: run `UPDATE_GOLDEN=1 make test`. It should be\n{text}");
}
