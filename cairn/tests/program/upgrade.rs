//! Databases of other versions of the program.

use std::path::Path;

use schema::FORMAT;
use schema::meta::{self, Identity};
use store::{Durability, RocksOptions, RocksStore, TableSpec};

use crate::support::{Cairn, Played, refused};

/// Opens the database with tables as an earlier version had them: one fewer.
fn earlier(data: &Path) -> Result<RocksStore, store::Error> {
    static EARLIER: std::sync::LazyLock<Vec<&TableSpec>> =
        std::sync::LazyLock::new(|| schema::TABLES[..schema::TABLES.len() - 1].to_vec());
    RocksStore::open(data, &EARLIER, RocksOptions::default())
}

#[test]
fn a_database_of_another_format_is_refused_and_stays_readable_for_the_version_that_made_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let data = dir.path().join("data");
    let played = Played::start("wasm-scenario", &[]);
    let identity = Identity {
        chain_id: played.chain().to_owned(),
        vm: "wasm".to_owned(),
        prefix: "init".to_owned(),
        start_height: 4,
        format: FORMAT - 1,
    };
    store::commit_rows::<schema::Error>(&earlier(&data).unwrap(), Durability::Synced, |txn| {
        meta::put(txn, &identity);
        Ok(())
    })
    .unwrap();
    let reason =
        format!("the database has format {}, this program reads and writes format {FORMAT}", FORMAT - 1);
    let (at, copied) = (data.to_str().unwrap(), path("copy"));
    let services = played.services();
    let (backups, exported) = (path("backups"), path("export"));
    let commands: [&[&str]; 11] = [
        &["info"],
        &["digest"],
        &["rollback", "--to", "10"],
        &["backup", "--to", &backups],
        &["export", "--to", &exported],
        &["train-dictionary"],
        &["train-dictionary", "--dry-run"],
        &[&["verify", "--offline"], &services[..]].concat(),
        &[&["verify", "--repair"], &services[..]].concat(),
        &[&["reindex", "--from", "10"], &services[..]].concat(),
        &[&["reindex"], &services[..]].concat(),
    ];
    for command in commands {
        let (code, message) = refused(&[&["db"], command, &["--data", at]].concat());
        assert!(code != 0 && message.contains(&reason), "{command:?}: {code} {message}");
        assert!(!message.contains("cannot be read"), "{command:?}: {message}");
        drop(earlier(&data).unwrap_or_else(|error| panic!("{command:?}: {error}")));
    }
    let (code, message) =
        refused(&["db", "copy", "--chain-id", played.chain(), "--from", at, "--to", &copied]);
    assert!(code == 1 && message.contains(&reason), "{code} {message}");
    for command in ["ingest", "run", "query"] {
        let mut flags = played.flags(command, &data);
        if command == "query" {
            flags.truncate(5);
        }
        let (code, log) = Cairn::start(&flags).ended_with_log();
        assert!(code == Some(1) && log.contains(&reason), "{command}: {log}");
        drop(earlier(&data).unwrap_or_else(|error| panic!("{command}: {error}")));
    }
}
