//! `cairn db copy` between a directory and an S3 interface: interrupted, continued, equal.

use std::process::Command;

use crate::gateway::{Gateway, URL};
use crate::support::{Cairn, Played, command, digest};
use crate::{digest_in, digest_of};

/// Tables after which the copy is killed, one after the other.
const KILLED_AFTER: [usize; 3] = [1, 4, 9];

/// `cairn db copy` of `chain`.
fn copy(gateway: &Gateway, [from, to]: [&str; 2], chain: &str) -> Command {
    let mut command = command(&["db", "copy", "--from", from, "--to", to, "--chain-id", chain]);
    command.envs(gateway.variables());
    command
}

/// Numbers of the rows that a copy names, in the order of its lines.
fn rows(printed: &str) -> Vec<u64> {
    let counts = printed.lines().filter_map(|line| line.strip_suffix(" rows")?.split_whitespace().nth(1));
    counts.map(|count| count.parse().unwrap()).collect()
}

#[test]
fn a_copy_in_either_direction_continues_after_kills_and_has_the_same_digest() {
    let dir = tempfile::tempdir().unwrap();
    let [local, back] = ["local", "back"].map(|name| dir.path().join(name));
    let played = Played::start("evm-load", &[]);
    played.index(&local);
    let (chain, expected) = (played.chain(), digest(&local));
    let gateway = Gateway::start();
    let [local, back_name] = [&local, &back].map(|path| path.to_str().unwrap());
    for way in [[local, URL], [URL, back_name]] {
        for tables in KILLED_AFTER {
            let mut copying = Cairn::spawn_as_is(copy(&gateway, way, chain));
            for _ in 0..tables {
                copying.printed_about(" rows");
            }
            copying.kill();
        }
        // No other command takes an unfinished copy for a database.
        let unfinished = digest_in(dir.path(), way[1], chain).envs(gateway.variables()).output().unwrap();
        let refused = String::from_utf8_lossy(&unfinished.stderr);
        assert!(!unfinished.status.success() && refused.contains("unfinished copy"), "{refused:?}");
        let whole = copy(&gateway, way, chain).output().unwrap();
        let printed = String::from_utf8_lossy(&whole.stdout);
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        assert!(printed.ends_with(&format!("digest {expected}\n")), "{printed}");
        // The tables that were complete at the kills are not copied again.
        let copied = rows(&printed);
        let complete = KILLED_AFTER[KILLED_AFTER.len() - 1];
        assert!(copied[..complete - 1].iter().all(|rows| *rows == 0), "{printed}");
        assert!(copied[complete..].iter().sum::<u64>() > 0, "{printed}");
        // A second copy to the same place is refused.
        let again = copy(&gateway, way, chain).output().unwrap();
        let refused = String::from_utf8_lossy(&again.stderr);
        assert!(!again.status.success() && refused.contains("already"), "{refused}");
    }
    let mut remote = digest_in(dir.path(), URL, chain);
    remote.envs(gateway.variables());
    assert_eq!(digest_of(remote), expected);
    assert_eq!(digest(&back), expected);
}
