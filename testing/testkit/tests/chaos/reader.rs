//! A client that reads the API during the chaos test, and checks that it never gets a false reply.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use query::Indexer;
use replay::Recording;
use serde_json::Value;
use testkit::live::hash_of;
use web::app::App;

/// Blocks of a page.
const LIMIT: u64 = 20;

/// The hashes of a chain's blocks, by height.
type History = HashMap<u64, String>;

/// The histories that the chain has had: every reply must be of one of them.
#[derive(Clone, Default)]
pub(crate) struct Truths(Arc<Mutex<Vec<History>>>);

impl Truths {
    pub(crate) fn add(&self, chain: &Recording) {
        let hash = |height| (height, hex::encode_upper(hash_of(chain, height).unwrap()));
        self.0.lock().unwrap().push((chain.first()..=chain.last()).map(hash).collect());
    }

    /// Checks a page from the newest block on: it is complete and of one history.
    fn first(&self, page: &Value) -> Result<Page, String> {
        let page = Page::of(page)?;
        let newest = page.blocks.first().map(|(height, _)| *height);
        if newest != (page.total > 0).then_some(page.total) {
            return Err(format!("the newest is {newest:?}, the total {}", page.total));
        }
        self.check(&page, page.total)?;
        Ok(page)
    }

    /// Checks a page requested with the cursor of `before`. The chain may have changed in between, also to a shorter
    /// one: the page continues where `before` ended, or is empty.
    fn second(&self, page: &Value, before: &Page) -> Result<(), String> {
        let page = Page::of(page)?;
        let rest = before.blocks.last().map_or(0, |(height, _)| height - 1);
        self.check(&page, rest.min(page.total))
    }

    /// The height before the first one of all histories.
    fn before_first(&self) -> u64 {
        let truths = self.0.lock().unwrap();
        truths.iter().flat_map(History::keys).min().unwrap() - 1
    }

    /// Checks that `page` has the blocks from `most` downward, as many as fit a page, of one history.
    fn check(&self, page: &Page, most: u64) -> Result<(), String> {
        let (shown, before) = (&page.blocks, self.before_first());
        let left = most.saturating_sub(before);
        if shown.len() as u64 != left.min(LIMIT) {
            return Err(format!("{} blocks where there are {left}, in pages of {LIMIT}", shown.len()));
        }
        if shown.first().is_some_and(|(height, _)| *height != most) {
            return Err(format!("it does not begin at {most}: {shown:?}"));
        }
        if !shown.windows(2).all(|pair| pair[0].0 == pair[1].0 + 1) {
            return Err(format!("not in one line: {shown:?}"));
        }
        if page.next.is_some() != (shown.last().is_some_and(|(height, _)| *height > before + 1)) {
            return Err(format!("the next page is {:?} after {shown:?}", page.next));
        }
        let truths = self.0.lock().unwrap();
        let of_one = truths.iter().any(|truth| shown.iter().all(|(h, hash)| truth.get(h) == Some(hash)));
        if of_one { Ok(()) } else { Err(format!("of no history that the chain ever had: {shown:?}")) }
    }
}

/// Blocks of a page, newest first; there may be further pages.
struct Page {
    blocks: Vec<(u64, String)>,
    total: u64,
    next: Option<String>,
}

impl Page {
    fn of(page: &Value) -> Result<Self, String> {
        let missing = |what: &str| format!("no {what} in {page}");
        let block = |block: &Value| -> Option<(u64, String)> {
            Some((block["height"].as_str()?.parse().ok()?, block["hash"].as_str()?.to_owned()))
        };
        let blocks = page["blocks"].as_array().ok_or_else(|| missing("blocks"))?;
        let blocks: Option<Vec<_>> = blocks.iter().map(block).collect();
        let total = page["pagination"]["total"].as_str().and_then(|total| total.parse().ok());
        let next = match &page["pagination"]["next_key"] {
            Value::String(key) => Some(key.clone()),
            Value::Null => None,
            _ => return Err(missing("next_key")),
        };
        let blocks = blocks.ok_or_else(|| missing("height and hash of every block"))?;
        Ok(Self { blocks, total: total.ok_or_else(|| missing("total"))?, next })
    }
}

/// Reads until it is stopped.
pub(crate) struct Reader {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<Read, String>>,
}

/// Number of pages read, and of those with blocks; second pages are counted separately.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Read {
    pub(crate) pages: u64,
    pub(crate) with_blocks: u64,
    pub(crate) second: u64,
}

impl Reader {
    pub(crate) fn start(app: App<Indexer>, truths: Truths) -> Self {
        let stop = Arc::<AtomicBool>::default();
        let stop_flag = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut read = Read::default();
            loop {
                // Once more after the stop, so that the last changes are read too.
                let is_last = stop_flag.load(Ordering::SeqCst);
                let first = truths.first(&get(&app, "")?)?;
                read.pages += 1;
                read.with_blocks += u64::from(!first.blocks.is_empty());
                if let Some(key) = &first.next {
                    // A cursor has no character that is reserved in a query string.
                    truths.second(&get(&app, &format!("&pagination.key={key}"))?, &first)?;
                    read.second += 1;
                }
                if is_last {
                    return Ok(read);
                }
                std::thread::yield_now();
            }
        });
        Self { stop, thread }
    }

    /// Stops reading; returns the number of pages, or the first false reply.
    pub(crate) fn stop(self) -> Result<Read, String> {
        self.stop.store(true, Ordering::SeqCst);
        self.thread.join().map_err(|_| "the reader panicked".to_owned())?
    }
}

/// A page of blocks.
fn get(app: &App<Indexer>, more: &str) -> Result<Value, String> {
    let answer = app.get(&format!("/indexer/block/v1/blocks?pagination.limit={LIMIT}{more}"));
    let (status, body) = (answer.status(), answer.body());
    if status != 200 {
        return Err(format!("{status}: {}", String::from_utf8_lossy(body)));
    }
    serde_json::from_slice(body).map_err(|error| format!("{error}: {}", String::from_utf8_lossy(body)))
}
