//! Paginated lists of the SDK (`cosmos.base.query.v1beta1`).
//!
//! # Invariants
//!
//! A list is complete or an error, and the number of pages is bounded.

use std::collections::BTreeMap;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{Error, RequestContext};
use crate::pool::endpoint::Request;
use crate::rest::Rest;
use crate::state_at::StateAt;

/// The largest page size that the modules accept.
const MAX_PAGE: usize = 1000;

/// No list here has more pages; more mean that the node repeats pages.
const MAX_PAGES: usize = 100;

/// A page's reference to the next one.
#[derive(Deserialize)]
pub(crate) struct Pagination {
    next_key: Option<String>,
}

impl Pagination {
    /// The key of the next page; `None` on the last.
    pub(crate) fn next(this: Option<Self>) -> Option<String> {
        this.and_then(|pagination| pagination.next_key).filter(|key| !key.is_empty())
    }
}

/// The path of a page: `limit` items from `key` on; `key` is from the previous page.
pub(crate) fn page_path(path: &str, limit: usize, key: Option<&str>) -> String {
    let path = format!("{path}?pagination.limit={limit}");
    match key {
        None => path,
        Some(key) => format!("{path}&pagination.key={}", utf8_percent_encode(key, NON_ALPHANUMERIC)),
    }
}

impl Rest {
    /// A whole list in a state: the member `list` of every page. `path` has no query.
    pub(crate) async fn all_pages<T: DeserializeOwned>(
        &self,
        path: &str,
        list: &str,
        state: impl Into<StateAt>,
    ) -> Result<Vec<T>, Error> {
        #[derive(Deserialize)]
        struct Page {
            pagination: Option<Pagination>,
            #[serde(flatten)]
            lists: BTreeMap<String, Value>,
        }
        let read = |mut page: Page| {
            let items = page.lists.remove(list).ok_or_else(|| format!("missing field `{list}`"))?;
            let items: Vec<T> = serde_json::from_value(items).map_err(|e| e.to_string())?;
            Ok((items, Pagination::next(page.pagination)))
        };
        let state = state.into();
        let (mut all, mut key) = (Vec::new(), None);
        for _ in 0..MAX_PAGES {
            let page = page_path(path, MAX_PAGE, key.as_deref());
            let request = Request::get(&page, page.clone()).in_state(state.clone());
            let (items, next) = self.query_for(request, read).await?;
            all.extend(items);
            key = next;
            if key.is_none() {
                return Ok(all);
            }
        }
        let at = RequestContext {
            service: "rest",
            host: "any address".into(),
            method: path.into(),
            height: state.height,
        };
        Err(Error::Malformed { at, reason: format!("more than {MAX_PAGES} pages of {MAX_PAGE} items") })
    }
}
