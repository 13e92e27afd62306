//! Validator set of a height (`/validators`), for the verification of commit signatures.
//!
//! # Invariants
//!
//! The set is complete and from one endpoint, or an error.

use std::sync::Arc;

use bytes::Bytes;
use serde::Deserialize;

use crate::comet::Comet;
use crate::comet::reply::result_of;
use crate::error::Error;
use crate::pool::endpoint::{Endpoint, Request};
use crate::pool::origin::Reply;

/// CometBFT's maximum page size (`rpc/core/env.go`).
const PER_PAGE: usize = 100;

/// Allows 10,000 validators, more than any chain has.
const MAX_PAGES: usize = 100;

impl Comet {
    /// The validators of the block at a height: the `result` of every page of `/validators`, all from one endpoint.
    pub async fn validators(&self, height: u64) -> Result<Vec<Reply>, Error> {
        let first = page_call(height, 1);
        let attempt = async |endpoint: Arc<Endpoint>| pages_of(&endpoint, height).await;
        let (pages, origin) = self.pool.query_with_origin(&first, attempt).await?;
        Ok(pages.into_iter().map(|bytes| Reply { bytes, origin: origin.clone() }).collect())
    }
}

async fn pages_of(endpoint: &Endpoint, height: u64) -> Result<Vec<Bytes>, Error> {
    #[derive(Deserialize)]
    struct Counts {
        count: String,
        total: String,
    }
    let (mut pages, mut seen) = (Vec::new(), 0);
    loop {
        let request = page_call(height, pages.len() + 1);
        let page = result_of(endpoint, &request).await?;
        let counts: Counts = endpoint.parse(&request, &page)?;
        let bad = |reason: String| endpoint.malformed(&request, reason);
        let number = |name: &str, text: &str| -> Result<usize, Error> {
            let shown = || chain::excerpt(text);
            text.parse().map_err(|_| bad(format!("{name} `{}` is not a number", shown())))
        };
        let (count, total) = (number("count", &counts.count)?, number("total", &counts.total)?);
        pages.push(page);
        seen += count.min(PER_PAGE);
        if seen >= total {
            return Ok(pages);
        }
        if count == 0 || pages.len() == MAX_PAGES {
            return Err(bad(format!("{seen} of {total} validators in {} pages", pages.len())));
        }
    }
}

fn page_call(height: u64, page: usize) -> Request {
    let path = format!("/validators?height={height}&page={page}&per_page={PER_PAGE}");
    Request::get("validators", path).about(height)
}
