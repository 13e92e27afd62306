//! Both engines against a plain map: random batches, long-lived snapshots, reads of every kind, and for the engine on
//! disk flushes, compactions and reopening.

use proptest::{collection::vec, prelude::*};
use store::{MemStore, RocksOptions, RocksStore};

use crate::play::{Model, Step, TABLES, play, sessions, step};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn the_engine_in_memory_is_a_map_with_snapshots(steps in vec(step(), 0..80)) {
        play(&MemStore::new(), &mut Model::new(), &steps, |_| {})?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_engine_on_disk_is_a_map_with_snapshots(sessions in sessions()) {
        let directory = tempfile::tempdir().unwrap();
        let mut model = Model::new();
        for steps in sessions {
            let store = RocksStore::open(directory.path(), TABLES, RocksOptions::default()).unwrap();
            play(&store, &mut model, &steps, |step| match step {
                Step::Flush => store.flush().unwrap(),
                _ => store.compact().unwrap(),
            })?;
        }
    }
}
