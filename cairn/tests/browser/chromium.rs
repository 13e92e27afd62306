//! Chromium as a process: found, started without a window, closed.
//!
//! # Invariants
//!
//! - Each browser has a profile of its own, removed with it.
//! - No name but `127.0.0.1` resolves, so neither a page nor the browser itself reaches another host.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::devtools::Connection;
use crate::support::until;
use crate::tab::Tab;

/// Programs that are tried if `CHROMIUM` names none.
const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

const FLAGS: [&str; 11] = [
    "--headless=new",
    // Chooses a free port and writes it to `DevToolsActivePort` in the profile.
    "--remote-debugging-port=0",
    // Its sandbox refuses to run as root, and in containers. The pages are ours.
    "--no-sandbox",
    // A container's /dev/shm is too small.
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--no-first-run",
    "--no-default-browser-check",
];

/// A running browser.
pub(crate) struct Chromium {
    process: Child,
    connection: Connection,
    authority: String,
    /// Removed when dropped.
    _profile: TempDir,
}

impl Chromium {
    /// Starts the browser and connects to it.
    pub(crate) fn start() -> Self {
        let profile = tempfile::Builder::new().prefix("chromium-").tempdir().unwrap();
        let program = program();
        let mut command = Command::new(&program);
        command.args(FLAGS).arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        let log = std::fs::File::create(profile.path().join("log")).unwrap();
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let (port, path) = until("Chromium's DevTools port", || {
            if let Some(status) = process.try_wait().unwrap() {
                let log = std::fs::read_to_string(profile.path().join("log")).unwrap_or_default();
                panic!("{} ended with {status}: {log}", program.display());
            }
            let text = std::fs::read_to_string(profile.path().join("DevToolsActivePort")).ok()?;
            // The path is written after the port: both lines are there, or the file is not complete.
            let (port, path) = text.split_once('\n')?;
            path.starts_with('/').then(|| (port.to_owned(), path.to_owned()))
        });
        let authority = format!("127.0.0.1:{port}");
        let connection = Connection::open(&authority, &path);
        Self { process, connection, authority, _profile: profile }
    }

    /// A tab with an empty cache, for pages of the server at `origin`.
    pub(crate) fn tab(&mut self, origin: &str) -> Tab {
        let context = self.connection.call("Target.createBrowserContext", json!({}));
        let target = self.connection.call(
            "Target.createTarget",
            json!({ "url": "about:blank", "browserContextId": context["browserContextId"] }),
        );
        let path = format!("/devtools/page/{}", target["targetId"].as_str().unwrap());
        Tab::new(Connection::open(&self.authority, &path), origin)
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        // After its end no process of the browser writes to the profile, which is removed next.
        self.connection.send("Browser.close", json!({}));
        let closed = self.connection.ended();
        if !closed {
            drop(self.process.kill());
        }
        drop(self.process.wait());
    }
}

/// The browser's program.
fn program() -> PathBuf {
    if let Some(named) = std::env::var_os("CHROMIUM") {
        return named.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let mut places = NAMES.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    places.find(|place| place.is_file()).unwrap_or_else(|| {
        panic!(
            "none of {NAMES:?} is in PATH: `make test-needs` installs Chromium on Debian; elsewhere install it, or name \
             its program in the environment variable CHROMIUM"
        )
    })
}
