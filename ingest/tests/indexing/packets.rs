//! The index of packets: the same however it is written, and on every way back.

use std::sync::Arc;

use replay::Recording;
use schema::index::Index;
use schema::packets::{PACKETS, Packets, PacketsByState};
use schema::rewind::rewind;
use schema::undo::{self, Lane};
use store::{Batch, Durability, Table as _};
use testkit::{indexed, recording};

use crate::evm_indexes::{build, empty, index, is_sound, rows};

static PACKETS_NOW: Index = PACKETS;

#[tokio::test(flavor = "multi_thread")]
async fn packets_are_the_same_however_they_are_written_and_go_back_with_the_blocks() {
    for name in ["l1-l2/l2", "bridge-cases/l2"] {
        let recording = Arc::new(Recording::open(&recording(name)).unwrap());
        let (last, with_blocks, later) = (recording.last(), empty(), empty());
        index(&recording, last, &[&PACKETS_NOW], &with_blocks).await;
        for table in PACKETS.tables.iter().filter(|table| !PACKETS.replies.contains(table)) {
            assert!(!rows(&*with_blocks, table).is_empty(), "{name}: {}", table.name);
        }
        let expected = indexed::digest(&*with_blocks).unwrap();
        assert!(is_sound(&with_blocks).await, "{name}");

        index(&recording, last, &[], &later).await;
        let without = indexed::digest(&*later).unwrap();
        build(&*later, &PACKETS_NOW, last);
        assert_eq!(indexed::digest(&*later).unwrap(), expected, "{name}: built after the blocks");
        PACKETS.remove(&*later).unwrap();
        assert_eq!(indexed::digest(&*later).unwrap(), without, "{name}: removed without a trace");

        let lowest = undo::extent(&*with_blocks.snapshot().unwrap(), Lane::Blocks).unwrap().lowest;
        assert!(lowest < last - 20, "{name}: {lowest}");
        for to in [last - 1, last - 20, lowest] {
            rewind(&*with_blocks, to).unwrap();
            let fresh = empty();
            index(&recording, to, &[&PACKETS_NOW], &fresh).await;
            index(&recording, to, &[&PACKETS_NOW], &with_blocks).await;
            let (found, expected) = (indexed::digest(&*with_blocks), indexed::digest(&*fresh));
            assert_eq!(found.unwrap(), expected.unwrap(), "{name}: back to {to}");
            assert!(is_sound(&with_blocks).await, "{name}: back to {to}");
        }
        index(&recording, last, &[&PACKETS_NOW], &with_blocks).await;
        assert_eq!(indexed::digest(&*with_blocks).unwrap(), expected, "{name}: forward again");

        for table in [Packets::SPEC, PacketsByState::SPEC] {
            let mut batch = Batch::new();
            let (key, value) = rows(&*with_blocks, table).swap_remove(3);
            batch.delete(table, key.clone());
            with_blocks.commit(batch, Durability::Buffered).unwrap();
            assert!(!is_sound(&with_blocks).await, "{name}: {}", table.name);
            let mut batch = Batch::new();
            batch.put(table, key, value);
            with_blocks.commit(batch, Durability::Buffered).unwrap();
            assert!(is_sound(&with_blocks).await, "{name}: {}", table.name);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_without_ibc_has_no_row_of_packets() {
    for name in ["evm-scenario", "move-scenario"] {
        let recording = Arc::new(Recording::open(&recording(name)).unwrap());
        let store = empty();
        index(&recording, recording.last(), &[&PACKETS_NOW], &store).await;
        for table in PACKETS.tables {
            assert_eq!(rows(&*store, table).len(), 0, "{name}: {}", table.name);
        }
    }
}
