//! The index of tokens, on every virtual machine.

use schema::index::Index;
use schema::tokens::{TOKENS, TokenNumbers, TokenQuestions};
use schema::undo::Lane;
use store::{Store as _, Table as _};

use super::evm_indexes::{build, rows};
use super::ledger::{is_repaired, is_the_same_however_it_is_written};

static INDEX: Index = TOKENS;

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_the_same_however_their_index_is_written() {
    for chain in ["evm-scenario", "move-scenario", "wasm-ledger"] {
        let store = is_the_same_however_it_is_written(&INDEX, chain).await;
        assert!(!rows(&*store, TokenNumbers::SPEC).is_empty(), "{chain}");
        INDEX.remove(&*store).unwrap();
        for table in INDEX.tables {
            assert!(rows(&*store, table).is_empty(), "{chain}: {}", table.name);
        }
        let last = Lane::Blocks.height(&*store.snapshot().unwrap()).unwrap();
        build(&*store, &INDEX, last);
        let asked = rows(&*store, TokenQuestions::SPEC).len();
        assert_eq!(asked, rows(&*store, TokenNumbers::SPEC).len(), "{chain}: each is to be asked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_token_is_found_and_repaired_from_the_records() {
    is_repaired(&INDEX, TokenNumbers::SPEC, "wasm-ledger").await;
}
