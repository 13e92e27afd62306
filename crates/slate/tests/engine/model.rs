//! The random model on the writer.

use proptest::prelude::*;
use slate::SlateStore;
use store::Store;

use crate::play::{Model, Step, play, sessions};
use crate::{CHAIN, ENGINE, bucket};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_engine_on_object_storage_is_a_map_with_snapshots(sessions in sessions()) {
        let bucket = bucket();
        let mut model = Model::new();
        for steps in sessions {
            let store = SlateStore::open(&ENGINE, &bucket, CHAIN).unwrap();
            play(&store, &mut model, &steps, |step| match step {
                Step::Flush => store.flush().unwrap(),
                _ => store.sync().unwrap(),
            })?;
        }
    }
}
