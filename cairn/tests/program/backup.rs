//! Backups of a database that is being written, and restores.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use crate::support::{Cairn, Played, command, digest, get, height, printed, refused, run, until};

/// The last height of `evm-scenario`.
const LAST: u64 = 226;

/// The table files that backups share, with their sizes.
fn shared(backups: &Path) -> BTreeMap<String, u64> {
    let entries = fs::read_dir(backups.join("shared_checksum")).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())).collect()
}

fn back_up(data: &Path, to: &Path) -> String {
    printed(&["db", "backup", "--to", to.to_str().unwrap(), "--data", data.to_str().unwrap()])
}

fn restore(from: &Path, number: &str, data: &Path) {
    let flags = ["--from", from.to_str().unwrap(), "--data", data.to_str().unwrap()];
    let text = printed(&[&["db", "restore", "--backup", number], &flags[..]].concat());
    assert!(text.starts_with(&format!("restored backup {number} of 20")), "{text}");
}

fn listed(backups: &Path) -> Vec<String> {
    let text = printed(&["db", "backup", "--list", "--to", backups.to_str().unwrap()]);
    text.lines().map(|line| line.split(' ').nth(1).unwrap().to_owned()).collect()
}

fn reached(url: &str, wanted: u64) {
    until("a height", || {
        let (_, status) = get(&format!("{url}/status"));
        let lanes = ["height", "internal_tx_height", "rich_list_height"];
        lanes.iter().all(|lane| status[lane].as_u64().is_some_and(|height| height >= wanted)).then_some(())
    });
}

#[test]
fn a_database_is_backed_up_while_it_is_written_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backups) = (dir.path().join("data"), dir.path().join("backups"));
    let played = Played::start("evm-scenario", &["--block-every", "100ms"]);
    let mut cairn = Cairn::start(&played.flags("run", &data));
    let url = cairn.url();

    reached(&url, 40);
    let mode = fs::metadata(data.join("control.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(back_up(&data, &backups).starts_with("backup 1 of 20"));
    let first = shared(&backups);
    reached(&url, LAST);
    back_up(&data, &backups);
    let second = shared(&backups);
    assert!(first.iter().all(|(name, size)| second.get(name) == Some(size)), "{first:?} {second:?}");
    assert!(second.len() > first.len());
    // No commits since then, but compactions may still write files.
    let mut made = 2;
    until("a backup that copies nothing", || {
        let before = shared(&backups);
        back_up(&data, &backups);
        made += 1;
        (shared(&backups) == before).then_some(())
    });
    assert_eq!(listed(&backups), (1..=made).map(|number| number.to_string()).collect::<Vec<_>>());
    until("the checkpoint to go", || (!data.join("checkpoint").exists()).then_some(()));

    cairn.signal("TERM");
    assert_eq!(cairn.ended().0, Some(0));
    assert!(!data.join("control.sock").exists());
    let whole = digest(&data);

    // Without a writing process, and with the leftover of a killed one.
    fs::create_dir(data.join("checkpoint")).unwrap();
    back_up(&data, &backups);
    assert!(!data.join("checkpoint").exists());
    let last = made + 1;
    let (early, late) = (dir.path().join("early"), dir.path().join("late"));
    restore(&backups, &last.to_string(), &late);
    assert_eq!(digest(&late), whole);
    restore(&backups, "1", &early);
    assert!((40..LAST).contains(&height(&early)), "{}", height(&early));
    assert!(printed(&["db", "verify", "--offline", "--data", early.to_str().unwrap()]).contains("sound"));
    // A restored database is indexed further as if it had never been interrupted.
    Played::start("evm-scenario", &[]).index(&early);
    assert_eq!(digest(&early), whole);

    let flags = ["--from", backups.to_str().unwrap(), "--data", late.to_str().unwrap()];
    let (code, message) = refused(&[&["db", "restore"], &flags[..]].concat());
    assert!(code == 1 && message.contains("it is not empty"), "{message}");
    assert!(!message.contains("is not a database of this program"), "{message}");
    let text = printed(&["db", "backup", "--keep", "2", "--to", flags[1], "--data", data.to_str().unwrap()]);
    assert!(text.starts_with(&format!("backup {} of", last + 1)), "{text}");
    assert_eq!(listed(&backups), [last, last + 1].map(|number| number.to_string()));
}

#[test]
fn a_killed_or_damaged_backup_leaves_the_earlier_ones() {
    let dir = tempfile::tempdir().unwrap();
    let (data, backups) = (dir.path().join("data"), dir.path().join("backups"));
    Played::start("wasm-scenario", &[]).index(&data);
    let whole = digest(&data);
    let at = backups.to_str().unwrap();
    let none = refused(&["db", "restore", "--from", at, "--data", dir.path().join("new").to_str().unwrap()]);
    assert!(none.0 == 1 && none.1.starts_with(&format!("error: {at}: it has no backups; ")), "{}", none.1);
    assert!(!backups.exists(), "looking for backups must not make a directory of them");

    back_up(&data, &backups);
    let args = ["db", "backup", "--to", at, "--data", data.to_str().unwrap()];
    for n in 0..8_u32 {
        let mut child = command(&args).stdout(std::process::Stdio::null()).spawn().unwrap();
        // Not a wait for a condition: the moment is the test's input.
        std::thread::sleep(Duration::from_millis(40) * n);
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(listed(&backups)[0], "1");
    }
    let data2 = dir.path().join("restored");
    restore(&backups, "1", &data2);
    assert_eq!(digest(&data2), whole);
    back_up(&data, &backups);
    assert_eq!(digest(&data), whole);

    // In a separate directory: killed backups left files that no backup refers to.
    let backups = dir.path().join("others");
    let at = backups.to_str().unwrap();
    back_up(&data, &backups);
    let (name, size) = shared(&backups).into_iter().max_by_key(|(_, size)| *size).unwrap();
    let file = backups.join("shared_checksum").join(&name);
    let mut bytes = fs::read(&file).unwrap();
    bytes[usize::try_from(size / 2).unwrap()] ^= 1;
    fs::write(&file, bytes).unwrap();
    let output = run(&["db", "restore", "--from", at, "--data", dir.path().join("x").to_str().unwrap()]);
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && message.contains("hecksum"), "{message}");
}
