//! `cairn record`: a recording contains all answers that an index requests.

use crate::support::{Cairn, Played, digest, printed};

#[test]
fn a_recording_gives_the_index_that_the_recorded_node_gave() {
    for (recording, from) in [
        ("evm-scenario", 1),
        ("evm-scenario", 221),
        ("move-scenario", 1),
        ("wasm-scenario", 4),
        ("wasm-scenario", 30),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (made, start) = (dir.path().join("made"), from.to_string());
        let original = Played::start(recording, &[]);
        let args = ["record", "--out", made.to_str().unwrap(), "--from", &start];
        let message = printed(&[&args, &original.services()[..]].concat());
        assert!(message.contains(&format!("heights {from} to ")), "{message}");
        let copy = Played::of("made", &made, &[]);
        let [of_original, of_copy] = [(&original, "original"), (&copy, "copy")].map(|(played, name)| {
            let data = dir.path().join(name);
            let mut cairn =
                Cairn::start(&[&played.flags("ingest", &data)[..], &["--start-height", &start]].concat());
            cairn.logged("caught up");
            cairn.signal("TERM");
            assert_eq!(cairn.ended().0, Some(0));
            digest(&data)
        });
        assert_eq!(of_copy, of_original, "{recording} from {from}");
    }
}
