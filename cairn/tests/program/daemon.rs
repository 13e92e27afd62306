//! Operations on a running program: reload, priorities, secrets, privileges.

mod outages;
mod start;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use crate::support::{Cairn, Played, digest, get_text, until};

const PASSWORD: &str = "hunter2-and-more";

/// The addresses of `flags` with a password in each.
fn with_password(flags: &[&str]) -> Vec<String> {
    flags.iter().map(|flag| flag.replacen("http://", &format!("http://operator:{PASSWORD}@"), 1)).collect()
}

#[test]
fn a_hangup_reloads_the_log_filter_only() {
    let played = Played::start("move-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cairn.toml");
    fs::write(&file, "log = \"warn\"\nmax_rewind = 5\n").unwrap();
    let data = dir.path().join("data");
    let mut flags = played.flags("run", &data);
    flags.extend(["--config", file.to_str().unwrap()]);
    let mut cairn = Cairn::start(&flags);
    until("the database", || data.join("CURRENT").exists().then_some(()));

    fs::write(&file, "log = \"info,ingest=debug\"\nmax_rewind = 6\n").unwrap();
    cairn.signal("HUP");
    let reloaded = cairn.logged_about("log filter reloaded");
    assert!(reloaded.contains("info,ingest=debug"), "{reloaded}");
    assert!(cairn.logged_about("changed settings that need a restart").contains("max_rewind"));

    fs::write(&file, "log = \"info\"\nmax_rewind = \"never\"\n").unwrap();
    cairn.signal("HUP");
    let refused = cairn.logged_about("settings reload failed");
    assert!(refused.contains("line 2") && refused.contains("max_rewind"), "{refused}");

    fs::write(&file, format!("log = \"info\"\ncomet = \"http://operator:{PASSWORD}@node\n")).unwrap();
    cairn.signal("HUP");
    let refused = cairn.logged_about("settings reload failed");
    assert!(refused.contains("line 2") && !refused.contains(PASSWORD), "{refused}");

    // Pending settings remain pending: the program does not run with them.
    fs::write(&file, "log = \"info\"\nmax_rewind = 6\n").unwrap();
    cairn.signal("HUP");
    assert!(cairn.logged_about("changed settings that need a restart").contains("max_rewind"));
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

/// Name and niceness of each thread of a process but its first (`proc_pid_stat(5)`).
#[cfg(target_os = "linux")]
#[allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]
fn threads(process: u32) -> Vec<(String, i64)> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let others = tasks.map(Result::unwrap).filter(|task| *task.file_name() != *process.to_string());
    // A thread that ends meanwhile cannot be read any more.
    let stats = others.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    let thread = |stat: String| {
        let (name, rest) = stat.split_once('(').unwrap().1.rsplit_once(')').unwrap();
        (name.to_owned(), rest.split_whitespace().nth(16).unwrap().parse().unwrap())
    };
    stats.map(thread).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn the_threads_of_the_index_have_a_lower_priority_than_those_of_the_server() {
    let played = Played::start("move-scenario", &[]);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let mut cairn = Cairn::start(&played.flags("run", &data));
    cairn.logged("caught up");
    let threads = threads(cairn.id());
    let niceness = |of: &str| {
        let of = threads.iter().filter(|(name, _)| name == of);
        of.map(|(_, niceness)| *niceness).collect::<std::collections::BTreeSet<_>>()
    };
    let (index, servers) = (niceness("cairn"), niceness("web"));
    assert!(!servers.is_empty() && index.last() > servers.last(), "{threads:?}");
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
}

#[test]
fn passwords_in_addresses_are_in_no_log_and_no_metric() {
    let played = Played::start("evm-scenario", &["--fault", "500@0.3", "--fault", "cut@0.1"]);
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let flags = with_password(&played.flags("run", &data));
    let mut flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    flags.extend(["--log", "trace", "--metrics", "127.0.0.1:0"]);
    let mut cairn = Cairn::start(&flags);
    let metrics = cairn.logged("metrics")["url"].as_str().unwrap().to_owned();
    cairn.logged("caught up");
    let (_, metrics) = get_text(&metrics);
    assert!(metrics.contains("cairn_node_requests_total"), "{metrics}");
    assert!(!metrics.contains(PASSWORD));
    cairn.signal("TERM");
    let message = cairn.everything();
    assert!(message.len() > 10_000, "at this level there is much to say");
    assert!(!message.contains(PASSWORD));
}

/// `sh -c script` as root of new namespaces; `None` where they are not permitted.
fn in_namespaces(script: &str) -> Option<Command> {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c"]);
    let permitted = Command::new("unshare").args(["--user", "--map-root-user", "--mount", "true"]).status();
    if !permitted.is_ok_and(|status| status.success()) {
        eprintln!("NOT TESTED: user namespaces are not permitted here");
        return None;
    }
    command.arg(script);
    Some(command)
}

#[test]
fn it_runs_without_privileges_on_a_read_only_system() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    fs::create_dir(&data).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let played = Played::start("move-scenario", &[]);
    let flags = played.flags("run", &data).join(" ");
    // Every mount but the data directory becomes read-only; then every capability is dropped.
    let script = format!(
        "mount --bind {data} {data} && \
         for at in $(cut -d' ' -f5 /proc/self/mountinfo); do \
             case $at in {data}|/proc*|/sys*|/dev*) ;; *) mount -o remount,bind,ro $at 2>/dev/null || true ;; esac; \
         done; \
         if touch {outside} 2>/dev/null; then echo writable; exit 3; fi; \
         exec setpriv --bounding-set -all --inh-caps -all --no-new-privs {cairn} {flags} --log-format json",
        data = data.display(),
        outside = dir.path().join("outside").display(),
        cairn = env!("CARGO_BIN_EXE_cairn"),
    );
    let Some(command) = in_namespaces(&script) else { return };
    let mut cairn = Cairn::spawn_as_is(command);
    cairn.logged("caught up");
    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    let undisturbed = dir.path().join("undisturbed");
    played.index(&undisturbed);
    assert_eq!(digest(&data), digest(&undisturbed));
}
