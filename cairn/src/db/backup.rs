//! `cairn db backup` and `cairn db restore`.
//!
//! # Invariants
//! * A backup is a consistent snapshot, also while another process writes.
//! * Nothing is left in the data directory.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, ErrorKind, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytesize::ByteSize;
use chain::Timestamp;
use serde_json::{Value, json};
use store::{Backup, Backups};

use super::{own, refuse_inside};
use crate::control::{self, CHECKPOINT, SOCKET};
use crate::output;
use crate::settings::{Settings, path};

/// Timeout of the control socket: a checkpoint flushes the memtables first, and another backup may be in progress.
const CONTROL_TIMEOUT: Duration = Duration::from_mins(2);

/// How it is backed up.
#[derive(Debug, clap::Args)]
pub(crate) struct How {
    /// The directory of the backups; a new backup copies only the files that none there has yet
    #[arg(long, value_name = "DIR", value_parser = path)]
    to: PathBuf,
    /// Removes all backups but the last N afterwards
    #[arg(long, value_name = "N")]
    keep: Option<std::num::NonZeroUsize>,
    /// Makes no backup and prints those that there are
    #[arg(long, conflicts_with = "keep")]
    list: bool,
}

/// Makes a backup, or lists them.
pub(super) fn back_up(settings: &Settings, how: &How) -> anyhow::Result<()> {
    let backups = Backups::new(&how.to);
    if how.list {
        let lines = backups.list()?.iter().map(line).collect::<Result<String, _>>()?;
        return Ok(output::print(&lines)?);
    }
    let data = settings.data()?;
    refuse_inside(&how.to, data, "backups")?;
    let source = Source::new(data)?;
    let made = backups.add(&source.path, schema::TABLES)?;
    drop(source);
    output::print(&line(&made)?)?;
    if let Some(n) = how.keep {
        backups.keep(n.get())?;
    }
    Ok(())
}

/// Writes a backup to a data directory.
pub(super) fn restore(settings: &Settings, from: &Path, number: Option<u32>) -> anyhow::Result<()> {
    let data = settings.data()?;
    refuse_inside(data, from, "the database")?;
    let restored = Backups::new(from).restore(number, data)?;
    Ok(output::print(&format!("restored {}", line(&restored)?))?)
}

fn line(backup: &Backup) -> Result<String, std::fmt::Error> {
    let Backup { number, made, bytes, files } = *backup;
    let time = Timestamp::from_unix_nanos(made.saturating_mul(1_000_000_000)).seconds();
    let mut text = String::new();
    writeln!(text, "backup {number} of {time}: {} in {files} files", ByteSize::b(bytes))?;
    Ok(text)
}

/// The checkpoint to copy from. One that the writer of the database made exists while the connection to it is open; one
/// that this process made is removed on drop.
struct Source {
    path: PathBuf,
    connection: Option<UnixStream>,
}

impl Source {
    fn new(data: &Path) -> anyhow::Result<Self> {
        match UnixStream::connect(data.join(SOCKET)) {
            Ok(connection) => Self::remote(connection),
            // No process listens on the socket: the writer has ended, or has no socket.
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => {
                let silent = "another process has the database open and listens on no control socket: stop it, or \
                              read its log";
                let store = own(data).map_err(|error| match error.downcast_ref() {
                    Some(store::Error::InUse { .. }) => error.context(silent),
                    _ => error,
                })?;
                Ok(Self { path: control::checkpoint(&store)?, connection: None })
            }
            Err(error) => {
                Err(error).with_context(|| format!("connecting to {}", data.join(SOCKET).display()))
            }
        }
    }

    fn remote(mut connection: UnixStream) -> anyhow::Result<Self> {
        let patience =
            || format!("no reply within {} s: another backup may be under way", CONTROL_TIMEOUT.as_secs());
        connection.set_read_timeout(Some(CONTROL_TIMEOUT))?;
        connection.write_all(format!("{}\n", json!({ "request": CHECKPOINT })).as_bytes())?;
        let mut response = String::new();
        BufReader::new(connection.try_clone()?).read_line(&mut response).with_context(patience)?;
        let response: Value = serde_json::from_str(&response).context("the reply of the control socket")?;
        if let Some(error) = response["error"].as_str() {
            bail!("the process that writes the database could not make a checkpoint: {error}");
        }
        let path =
            response[CHECKPOINT].as_str().map(PathBuf::from).context("a reply without a checkpoint")?;
        ensure!(
            fs::exists(&path).unwrap_or(false),
            "the checkpoint {} cannot be seen from here: run this where the process that writes the database runs, as \
             the same user",
            path.display()
        );
        Ok(Self { path, connection: Some(connection) })
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if self.connection.is_none()
            && let Err(error) = control::discard(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "the checkpoint is left behind");
        }
    }
}
