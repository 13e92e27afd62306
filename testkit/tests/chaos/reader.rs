//! Somebody who reads the API all the while, and what nobody may ever read there.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use query::Indexer;
use replay::Recording;
use serde_json::Value;
use testkit::live::hash_of;
use web::app::App;

/// The hashes of a chain's blocks, by height.
type History = HashMap<u64, String>;

/// The histories that the chain has had: an answer must be of one of them.
#[derive(Clone, Default)]
pub(crate) struct Truths(Arc<Mutex<Vec<History>>>);

impl Truths {
    pub(crate) fn add(&self, chain: &Recording) {
        let hash = |height| (height, hex::encode_upper(hash_of(chain, height).unwrap()));
        self.0.lock().unwrap().push((chain.first()..=chain.last()).map(hash).collect());
    }

    /// What is wrong with a page of blocks; nothing if it is of one history, without a gap and up to its total.
    fn wrong(&self, page: &Value) -> Option<String> {
        let blocks = page["blocks"].as_array()?;
        let height = |block: &Value| block["height"].as_str()?.parse::<u64>().ok();
        let shown: Vec<(u64, String)> = blocks
            .iter()
            .map(|block| (height(block).unwrap_or(0), block["hash"].as_str().unwrap_or("").to_owned()))
            .collect();
        if !shown.windows(2).all(|pair| pair[0].0 == pair[1].0 + 1) {
            return Some(format!("not in one line: {shown:?}"));
        }
        let total: u64 = page["pagination"]["total"].as_str()?.parse().ok()?;
        if shown.first().is_some_and(|first| first.0 != total) {
            return Some(format!("the newest is {:?}, the total {total}", shown.first()));
        }
        let truths = self.0.lock().unwrap();
        let of_one = truths.iter().any(|truth| shown.iter().all(|(h, hash)| truth.get(h) == Some(hash)));
        (!of_one).then(|| format!("of no history that the chain ever had: {shown:?}"))
    }
}

/// Reads until it is told to stop.
pub(crate) struct Reader {
    stop: Arc<AtomicBool>,
    pages: Arc<AtomicU64>,
    thread: JoinHandle<Option<String>>,
}

impl Reader {
    pub(crate) fn start(app: App<Indexer>, truths: Truths) -> Self {
        let (stop, pages) = (Arc::<AtomicBool>::default(), Arc::<AtomicU64>::default());
        let (told, count) = (Arc::clone(&stop), Arc::clone(&pages));
        let thread = std::thread::spawn(move || {
            while !told.load(Ordering::SeqCst) {
                let answer = app.get("/indexer/block/v1/blocks?pagination.limit=20");
                let status = answer.status();
                let body: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
                let wrong =
                    if status == 200 { truths.wrong(&body) } else { Some(format!("{status}: {body}")) };
                if wrong.is_some() {
                    return wrong;
                }
                count.fetch_add(1, Ordering::SeqCst);
                std::thread::yield_now();
            }
            None
        });
        Self { stop, pages, thread }
    }

    /// Stops reading; gives the number of pages, or what was wrong.
    pub(crate) fn stop(self) -> Result<u64, String> {
        self.stop.store(true, Ordering::SeqCst);
        match self.thread.join().map_err(|_| "the reader panicked".to_owned())? {
            None => Ok(self.pages.load(Ordering::SeqCst)),
            Some(wrong) => Err(wrong),
        }
    }
}
