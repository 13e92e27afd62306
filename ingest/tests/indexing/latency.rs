//! What is asked for at the same time, and what is not.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use replay::answers::Answer;
use testkit::altered::Exchange;
use testkit::indexed;

use crate::odd_answers::{HEIGHT, LAST, ending, indexed_with, undisturbed};

/// Far longer than two requests take on a busy machine; only a test that fails waits for it.
const PATIENCE: Duration = Duration::from_secs(20);

/// Requests that have come.
#[derive(Default)]
struct Seen {
    parts: Mutex<Vec<&'static str>>,
    came: Condvar,
}

impl Seen {
    fn note(&self, part: &'static str) {
        self.parts.lock().unwrap().push(part);
        self.came.notify_all();
    }

    /// Whether each of `parts` comes, with this thread waiting for it.
    fn all_come(&self, parts: &[&str]) -> bool {
        let seen = self.parts.lock().unwrap();
        let missing = |seen: &mut Vec<&str>| !parts.iter().all(|part| seen.contains(part));
        !self.came.wait_timeout_while(seen, PATIENCE, missing).unwrap().1.timed_out()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn at_the_head_a_block_is_asked_for_together_with_its_results_and_receipts() {
    let (seen, last) = (Arc::new(Seen::default()), format!("\"{LAST:#x}\""));
    let (noted, together) = (Arc::clone(&seen), Arc::new(Mutex::new(None)));
    let outcome = Arc::clone(&together);
    let alter = move |exchange: Exchange<'_>| -> Answer {
        if exchange.is_comet("block_results", LAST) {
            noted.note("results");
        } else if exchange.is_rpc("eth_getBlockReceipts", &last) {
            noted.note("receipts");
        } else if exchange.is_comet("block", LAST) {
            let mut outcome = outcome.lock().unwrap();
            if outcome.is_none() {
                *outcome = Some(noted.all_come(&["results", "receipts"]));
            }
        }
        ending(exchange)
    };
    let store = indexed_with(alter).await;
    assert_eq!(*together.lock().unwrap(), Some(true));
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn while_catching_up_no_receipts_are_asked_for_of_a_block_without_transactions() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let asked = Arc::clone(&seen);
    let store = indexed_with(move |exchange| {
        for height in 1..=HEIGHT {
            if exchange.is_rpc("eth_getBlockReceipts", &format!("\"{height:#x}\"")) {
                asked.lock().unwrap().push(height);
            }
        }
        ending(exchange)
    })
    .await;
    let asked = seen.lock().unwrap().clone();
    assert!(asked.contains(&HEIGHT) && !asked.contains(&1), "{asked:?}");
    assert_eq!(indexed::digest(&*store).unwrap(), undisturbed().await);
}
