//! The control socket: a Unix socket through which the writer of a database makes checkpoints for other processes.
//!
//! # Invariants
//! * The socket is in the data directory, with access for its owner only.
//! * One request at a time, one bounded line each; every wait has a timeout.
//! * A failure of the socket does not stop the process.
//!
//! ```text
//! → {"request":"checkpoint"}
//! ← {"checkpoint":"/data/checkpoint"}     or  {"error":"…"}
//! ```
//!
//! The checkpoint exists until the connection is closed.

use std::convert::Infallible;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use store::RocksStore;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The socket's name in the data directory.
pub(crate) const SOCKET: &str = "control.sock";

/// The request for a checkpoint.
pub(crate) const CHECKPOINT: &str = "checkpoint";

/// Maximum length of a request in bytes.
const MAX_REQUEST: u64 = 1024;

/// Timeout for a request line and for the response.
const IO_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum lifetime of a checkpoint: it keeps obsolete files from deletion, which takes disk space.
const MAX_HOLD: Duration = Duration::from_hours(12);

/// The path of a checkpoint: inside the data directory, because hard links need the same file system.
pub(crate) fn checkpoint_in(data: &Path) -> PathBuf {
    data.join(CHECKPOINT)
}

/// Removes a checkpoint, if there is one.
pub(crate) fn discard(checkpoint: &Path) -> io::Result<()> {
    match fs::remove_dir_all(checkpoint) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Makes a checkpoint of `store`; replaces a leftover one.
pub(crate) fn checkpoint(store: &RocksStore) -> anyhow::Result<PathBuf> {
    let path = checkpoint_in(&fs::canonicalize(store.path())?);
    discard(&path).with_context(|| format!("removing {}", path.display()))?;
    store.checkpoint(&path)?;
    Ok(path)
}

/// Fails for an empty database: its backup could replace a good one.
fn refuse_empty(store: &RocksStore) -> anyhow::Result<()> {
    ensure!(
        schema::open::identity(store)?.is_some(),
        "the database is empty: nothing is indexed before the node has answered"
    );
    Ok(())
}

/// Serves the control socket for as long as it is polled. `busy` is held while a thread works on the store.
pub(crate) async fn serve(store: Arc<RocksStore>, busy: Arc<Semaphore>) -> Infallible {
    let (_remove, listener) = match listen(store.path()) {
        Ok(listening) => listening,
        Err(error) => {
            tracing::warn!(%error, "no control socket: `cairn db backup` needs this process to stop");
            return std::future::pending().await;
        }
    };
    loop {
        let outcome = match listener.accept().await {
            Ok((stream, _)) => respond(stream, &store, &busy).await,
            Err(error) => {
                // Out of descriptors, for example: accept again after a pause.
                tokio::time::sleep(IO_TIMEOUT).await;
                Err(error.into())
            }
        };
        if let Err(error) = outcome {
            tracing::warn!(error = format!("{error:#}"), "a request of the control socket failed");
        }
    }
}

/// The socket file, removed on drop.
struct Socket(PathBuf);

impl Drop for Socket {
    fn drop(&mut self) {
        // The next start replaces a leftover file.
        drop(fs::remove_file(&self.0));
    }
}

fn listen(data: &Path) -> io::Result<(Socket, UnixListener)> {
    discard(&checkpoint_in(data))?;
    // Rename it after the permissions are set, so that no other user can connect in between.
    let (socket, new) = (data.join(SOCKET), data.join("control.new"));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&new)?;
    fs::set_permissions(&new, Permissions::from_mode(0o600))?;
    fs::rename(&new, &socket)?;
    Ok((Socket(socket), listener))
}

async fn respond(stream: UnixStream, store: &Arc<RocksStore>, busy: &Arc<Semaphore>) -> anyhow::Result<()> {
    let (read, mut write) = stream.into_split();
    let (mut read, mut line) = (BufReader::new(read.take(MAX_REQUEST)), String::new());
    timeout(IO_TIMEOUT, read.read_line(&mut line)).await.context("no request came in time")??;
    let request: Value = serde_json::from_str(&line).unwrap_or_default();
    let made = if request["request"] == CHECKPOINT {
        let (store, busy) = (Arc::clone(store), Arc::clone(busy).acquire_owned().await?);
        tokio::task::spawn_blocking(move || {
            let made = refuse_empty(&store).and_then(|()| checkpoint(&store));
            drop(store);
            drop(busy);
            made
        })
        .await?
    } else {
        Err(anyhow::anyhow!("unknown request; the only one is {{\"request\":\"{CHECKPOINT}\"}}"))
    };
    let response = match &made {
        Ok(path) => json!({ "checkpoint": path }),
        Err(error) => json!({ "error": format!("{error:#}") }),
    };
    let sent = timeout(IO_TIMEOUT, write.write_all(format!("{response}\n").as_bytes())).await;
    let Ok(path) = made else { return Ok(sent??) };
    tracing::info!(path = %path.display(), "made a checkpoint");
    if matches!(sent, Ok(Ok(()))) {
        // Wait until the client disconnects or sends unexpected data.
        drop(timeout(MAX_HOLD, read.read_u8()).await);
    }
    tokio::task::spawn_blocking(move || discard(&path)).await??;
    Ok(sent??)
}
