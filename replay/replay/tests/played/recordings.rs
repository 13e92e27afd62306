//! Recording files: every shipped recording opens, a copy written from it is equal, and errors name the broken file.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use replay::recording::{Recording, RecordingWriter, Summary};

fn dir(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testing/recordings").join(name)
}

/// A small copy of a recording, for edits that break it.
fn copy() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in ["recording.json", "blocks.ndjson.zst", "state.ndjson.zst"] {
        fs::copy(dir("wasm-scenario").join(file), copy.path().join(file)).unwrap();
    }
    copy
}

/// Rewrites a compressed file of a copy.
fn edit(file: PathBuf, change: impl FnOnce(String) -> String) {
    let text = String::from_utf8(zstd::decode_all(fs::File::open(&file).unwrap()).unwrap()).unwrap();
    fs::write(file, zstd::encode_all(change(text).as_bytes(), 3).unwrap()).unwrap();
}

fn refusal(copy: &tempfile::TempDir) -> String {
    Recording::open(copy.path()).unwrap_err().to_string()
}

#[test]
fn every_shipped_scenario_opens_and_matches_its_summary() {
    for name in ["evm-scenario", "move-scenario", "wasm-scenario", "l1-l2/l1", "l1-l2/l2"] {
        let recording = Recording::open(&dir(name)).unwrap();
        let summary = recording.summary();
        let txs: usize = recording.heights().iter().map(|h| h.raw_txs().unwrap().len()).sum();
        assert_eq!(txs as u64, summary.txs, "{name}");
        assert!(recording.state().len() as u64 >= summary.state_queries, "{name}");
        assert_eq!(recording.height(summary.last_height).unwrap().height, summary.last_height);
        assert!(recording.height(summary.last_height + 1).is_none());
        assert!(recording.height(summary.first_height - 1).is_none());
    }
}

#[test]
fn the_load_recording_opens_and_its_time_is_printed() {
    let start = Instant::now();
    let recording = Recording::open(&dir("evm-load")).unwrap();
    println!("evm-load opened in {:?}", start.elapsed());
    let text: usize = recording.heights().iter().map(|h| h.block.len() + h.block_results.len()).sum();
    assert!(text > 50_000_000, "{text}");
}

#[test]
fn a_recording_written_again_reads_the_same_and_counts_the_same() {
    for name in ["evm-scenario", "wasm-scenario"] {
        let old = Recording::open(&dir(name)).unwrap();
        let copy = tempfile::tempdir().unwrap();
        let mut writer = RecordingWriter::open(copy.path(), old.is_evm()).unwrap();
        for height in old.heights() {
            writer.append(height).unwrap();
        }
        let about = Summary { txs: 0, last_height: 0, ..old.summary().clone() };
        let summary = writer.finish(about, 1).unwrap();
        assert_eq!(summary, Summary { state_queries: 0, ..old.summary().clone() });
        let new = Recording::open(copy.path()).unwrap();
        assert_eq!(format!("{:?}", new.heights()), format!("{:?}", old.heights()));
        assert_eq!(fs::read_dir(copy.path()).unwrap().count(), 3, "partial files remain");
        assert!(RecordingWriter::open(copy.path(), true).unwrap_err().to_string().contains("already"));
    }
}

#[test]
fn an_interrupted_recording_continues_after_its_last_complete_line() {
    let old = Recording::open(&dir("wasm-scenario")).unwrap();
    let copy = tempfile::tempdir().unwrap();
    let mut writer = RecordingWriter::open(copy.path(), false).unwrap();
    assert!(writer.last().is_none());
    old.heights()[..5].iter().for_each(|height| writer.append(height).unwrap());
    assert!(writer.append(&old.heights()[7]).unwrap_err().to_string().contains("where 9 comes next"));
    drop(writer);
    let partial = copy.path().join("blocks.ndjson.partial");
    let text = fs::read(&partial).unwrap();
    fs::write(&partial, &text[..text.len() - 10]).unwrap();
    let mut writer = RecordingWriter::open(copy.path(), false).unwrap();
    assert_eq!(writer.last().unwrap().height, 7);
    old.heights()[4..].iter().for_each(|height| writer.append(height).unwrap());
    let summary = writer.finish(old.summary().clone(), 1).unwrap();
    assert_eq!((summary.first_height, summary.last_height, summary.txs), (4, 67, 46));
    let new = Recording::open(copy.path()).unwrap();
    assert_eq!(format!("{:?}", new.heights()), format!("{:?}", old.heights()));
}

#[test]
fn a_missing_file_is_named() {
    for file in ["recording.json", "blocks.ndjson.zst", "state.ndjson.zst"] {
        let copy = copy();
        fs::remove_file(copy.path().join(file)).unwrap();
        let message = refusal(&copy);
        assert!(message.starts_with("cannot open") && message.contains(file), "{message}");
    }
}

#[test]
fn a_broken_line_is_named_with_its_file_and_number() {
    let copy = copy();
    edit(copy.path().join("blocks.ndjson.zst"), |text| {
        text.replacen(r#"{"height":6,"#, r#"{"height":6;"#, 1)
    });
    let message = refusal(&copy);
    assert!(message.contains("blocks.ndjson.zst line 3: "), "{message}");
    let copy = self::copy();
    edit(copy.path().join("state.ndjson.zst"), |text| format!("{{\"kind\":\"soap\"}}\n{text}"));
    let message = refusal(&copy);
    assert!(message.contains("state.ndjson.zst line 1: kind \"soap\""), "{message}");
}

#[test]
fn heights_that_are_missing_doubled_or_beyond_the_summary_are_named() {
    for (what, reason) in [
        ("missing", "line 3: height 7 where 6 was expected"),
        ("short", "ends before height 64"),
        ("long", "line 65: height 67 where 68 was expected"),
    ] {
        let copy = copy();
        edit(copy.path().join("blocks.ndjson.zst"), |text| {
            let mut lines: Vec<_> = text.lines().collect();
            match what {
                "missing" => drop(lines.remove(2)),
                "short" => lines.truncate(60),
                _ => lines.push(lines[63]),
            }
            lines.join("\n")
        });
        let message = refusal(&copy);
        assert!(message.contains(reason), "{message}");
    }
}

#[test]
fn an_incomplete_file_and_another_format_are_named() {
    let copy = copy();
    let blocks = copy.path().join("blocks.ndjson.zst");
    let whole = fs::read(&blocks).unwrap();
    fs::write(&blocks, &whole[..whole.len() / 2]).unwrap();
    let message = refusal(&copy);
    assert!(
        message.contains("blocks.ndjson.zst line") && message.contains("is the file whole?"),
        "{message}"
    );
    let summary = copy.path().join("recording.json");
    let text = fs::read_to_string(&summary).unwrap();
    fs::write(&summary, text.replace("\"format\": 1", "\"format\": 2")).unwrap();
    assert!(refusal(&copy).contains("format 2; this program reads format 1"));
    fs::write(&summary, text.replace("\"first_height\": 4", "\"first_height\": 0")).unwrap();
    assert!(refusal(&copy).contains("heights 0 to 67 are not a range"));
}
