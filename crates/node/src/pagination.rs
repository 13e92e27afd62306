//! Paginated lists of the SDK (`cosmos.base.query.v1beta1`).
//!
//! # Invariants
//!
//! A list is complete or an error, and the number of pages is bounded.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use crate::cosmos::Rest;
use crate::endpoint::Call;
use crate::error::{Error, Site};
use crate::state_at::StateAt;

/// The largest page that the modules give without complaint.
const LARGEST: usize = 1000;

/// No list asked for here has more than this many pages; more mean that the node goes in circles.
const MOST_PAGES: usize = 100;

/// A page's pointer to the next one.
#[derive(Deserialize)]
pub(crate) struct Pagination {
    next_key: Option<String>,
}

impl Pagination {
    /// The key of the next page; none on the last.
    pub(crate) fn next(this: Option<Self>) -> Option<String> {
        this.and_then(|pagination| pagination.next_key).filter(|key| !key.is_empty())
    }
}

/// One page of a list.
pub(crate) trait Page: for<'de> Deserialize<'de> {
    /// Item of the list.
    type Item;

    /// Its items, and where the next page is.
    fn open(self) -> (Vec<Self::Item>, Option<Pagination>);
}

/// The path of a page: `limit` items from `key` on, a key as the page before gave it.
pub(crate) fn page_path(path: &str, limit: usize, key: Option<&str>) -> String {
    let path = format!("{path}?pagination.limit={limit}");
    match key {
        None => path,
        Some(key) => format!("{path}&pagination.key={}", utf8_percent_encode(key, NON_ALPHANUMERIC)),
    }
}

impl Rest {
    /// A whole list as it is in a state. `path` has no query.
    pub(crate) async fn all_pages<P: Page>(
        &self,
        path: &str,
        state: impl Into<StateAt>,
    ) -> Result<Vec<P::Item>, Error> {
        let state = state.into();
        let (mut all, mut key) = (Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = page_path(path, LARGEST, key.as_deref());
            let call = Call::get(&page, page.clone()).in_state(state.clone());
            let (items, pagination) = self.ask_for(call, P::open).await?;
            all.extend(items);
            key = Pagination::next(pagination);
            if key.is_none() {
                return Ok(all);
            }
        }
        let at =
            Site { service: "rest", host: "any address".into(), call: path.into(), height: state.height };
        Err(Error::Malformed { at, reason: format!("more than {MOST_PAGES} pages of {LARGEST} items") })
    }
}
