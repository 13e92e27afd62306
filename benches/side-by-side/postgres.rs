//! A PostgreSQL server of this run, in a temporary directory, reachable over a Unix socket only.
//!
//! # Invariants
//!
//! - The server ends with its value.
//! - It does not run as root, which PostgreSQL refuses: where this program does, it runs as the user `postgres`.

use std::fs;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use postgres::{Client, Config, NoTls};
use tempfile::TempDir;

/// Debian's directory of PostgreSQL's programs, with a directory for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

/// Settings of a server that is tuned for an indexer on this machine; everything else has its default.
const SETTINGS: &str = "-c listen_addresses= -c shared_buffers=4GB -c max_wal_size=4GB";

/// A running server.
pub(crate) struct Postgres {
    directory: TempDir,
    programs: PathBuf,
    user: Option<User>,
    /// Process id of the postmaster, the parent of all other processes.
    postmaster: u32,
}

/// A user of the system.
#[derive(Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

impl Postgres {
    /// Starts a server without data.
    pub(crate) fn start() -> Result<Self> {
        let directory = tempfile::tempdir()?;
        let user = unprivileged(directory.path())?;
        if let Some(User { uid, gid }) = user {
            chown(directory.path(), Some(uid), Some(gid)).context("giving PostgreSQL its directory")?;
        }
        let mut server = Self { directory, programs: programs()?, user, postmaster: 0 };
        server.run("initdb", &["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"])?;
        let log = server.path().join("log");
        let options = format!("{SETTINGS} -k {}", server.path().display());
        server.run("pg_ctl", &["--wait", "--log", &log.to_string_lossy(), "--options", &options, "start"])?;
        let file = server.data().join("postmaster.pid");
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        server.postmaster = text.lines().next().unwrap_or_default().parse().context("the postmaster's id")?;
        Ok(server)
    }

    /// A new session.
    pub(crate) fn connect(&self) -> Result<Client> {
        let mut config = Config::new();
        config.host_path(self.path()).user("postgres").dbname("postgres");
        config.connect(NoTls).context("connecting to PostgreSQL")
    }

    /// The version, as PostgreSQL prints it.
    pub(crate) fn version(&self) -> Result<String> {
        Ok(self.connect()?.query_one("SELECT version()", &[])?.get(0))
    }

    /// CPU time of the live processes. Keep the sessions open between two readings.
    pub(crate) fn cpu(&self) -> Result<Duration> {
        let mut nanos = 0;
        for entry in fs::read_dir("/proc").context("listing the processes")? {
            let path = entry?.path();
            // A process may end while its files are read.
            let (Ok(stat), Ok(times)) =
                (fs::read_to_string(path.join("stat")), fs::read_to_string(path.join("schedstat")))
            else {
                continue;
            };
            if self.is_ours(&stat) {
                let on_core = times.split(' ').next().context("schedstat is empty")?;
                nanos += on_core.parse::<u64>().with_context(|| format!("schedstat is `{times}`"))?;
            }
        }
        Ok(Duration::from_nanos(nanos))
    }

    /// Whether `/proc/*/stat` is the postmaster's or that of a child of it.
    fn is_ours(&self, stat: &str) -> bool {
        let pid = stat.split(' ').next().and_then(|pid| pid.parse().ok());
        // The name, in parentheses, may contain spaces.
        let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1)?.parse().ok());
        [pid, parent].contains(&Some(self.postmaster))
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn data(&self) -> PathBuf {
        self.path().join("data")
    }

    /// Runs one of PostgreSQL's programs on the data directory, to its end.
    fn run(&self, program: &str, args: &[&str]) -> Result<()> {
        let mut command = Command::new(self.programs.join(program));
        command.arg("--pgdata").arg(self.data()).args(args).current_dir(self.path());
        if let Some(User { uid, gid }) = self.user {
            command.uid(uid).gid(gid);
        }
        // Into a file: a server that is started inherits a pipe and never closes it.
        let printed = self.path().join(program);
        let file = fs::File::create(&printed)?;
        let status = command.stdout(file.try_clone()?).stderr(file).status();
        let status = status.with_context(|| format!("starting {program}"))?;
        ensure!(status.success(), "{program}: {status}: {}", fs::read_to_string(&printed)?);
        Ok(())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // Nothing is left to do about a failure: the directory goes in any case.
        drop(self.run("pg_ctl", &["--wait", "--mode=fast", "stop"]));
    }
}

/// The user to run as where this process is root, who owns `probe`.
fn unprivileged(probe: &Path) -> Result<Option<User>> {
    use std::os::unix::fs::MetadataExt as _;
    if fs::metadata(probe)?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").context("reading /etc/passwd")?;
    let line = users.lines().find(|line| line.starts_with("postgres:"));
    let line = line.context("PostgreSQL does not run as root, and there is no user `postgres`")?;
    let mut numbers = line.split(':').skip(2).map(str::parse);
    let (Some(Ok(uid)), Some(Ok(gid))) = (numbers.next(), numbers.next()) else {
        bail!("/etc/passwd has no numbers for `postgres`: {line}")
    };
    Ok(Some(User { uid, gid }))
}

/// The directory of PostgreSQL's programs: Debian's newest version, else the one of `initdb` in `PATH`.
fn programs() -> Result<PathBuf> {
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in fs::read_dir(DEBIAN).into_iter().flatten() {
        let entry = entry?;
        let version = entry.file_name().to_string_lossy().parse();
        let programs = entry.path().join("bin");
        if let Ok(version) = version
            && programs.join("initdb").exists()
        {
            found.push((version, programs));
        }
    }
    if let Some((_, newest)) = found.into_iter().max() {
        return Ok(newest);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path);
    places.find(|place| place.join("initdb").exists()).context("no PostgreSQL: install Debian's `postgresql`")
}
