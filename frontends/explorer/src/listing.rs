//! Lists of the API: a page of rows, its cursors, and the links to the neighbouring pages.

use http::StatusCode;
use maud::{Markup, html};
use query::v1::PageResponse;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::format::count;
use crate::target::Target;

/// Rows of a page.
pub(crate) const ROWS: &str = "25";

/// The cursor of a page, as in the API.
pub(crate) const KEY: Param =
    Param::query("pagination.key", Type::String, "The next_key or previous_key of a page of the JSON list.");

/// A list as the API returns it, under the name of its rows.
#[derive(Deserialize)]
struct ListResponse<T> {
    #[serde(
        alias = "blocks",
        alias = "txs",
        alias = "internal_txs",
        alias = "collections",
        alias = "tokens",
        alias = "holders",
        alias = "channels",
        alias = "packets",
        alias = "withdrawals",
        alias = "deposits",
        alias = "outputs",
        alias = "claims",
        alias = "bridges",
        alias = "transfers",
        alias = "balances"
    )]
    rows: Vec<T>,
    pagination: PageResponse,
}

/// True for the error of what is not in this index, or not yet.
pub(crate) fn is_absent(error: &HttpError) -> bool {
    matches!(error.status(), StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE)
}

/// A page of a list.
pub(crate) struct Listing<T> {
    pub(crate) rows: Vec<T>,
    cursors: PageResponse,
    /// The request.
    pub(crate) request: String,
}

impl<T: DeserializeOwned> Listing<T> {
    /// The page of `list` that the cursor of `call` selects.
    pub(crate) fn read(explorer: &Explorer, call: &Call<'_>, list: Target) -> Result<Self, HttpError> {
        Self::read_rows(explorer, call, list, ROWS)
    }

    /// As [`Self::read`], with this number of rows.
    pub(crate) fn read_rows(
        explorer: &Explorer,
        call: &Call<'_>,
        list: Target,
        rows: &str,
    ) -> Result<Self, HttpError> {
        let list = list.with("pagination.limit", rows);
        Self::first(explorer, list.with_some("pagination.key", call.first("pagination.key")))
    }

    /// The page that `list` selects itself.
    pub(crate) fn first(explorer: &Explorer, list: Target) -> Result<Self, HttpError> {
        let request = list.into_string();
        let ListResponse { rows, pagination } = explorer.read(&request)?;
        Ok(Self { rows, cursors: pagination, request })
    }

    /// As [`Self::first`]; `None` if the index of the list is not stored, or not built yet.
    pub(crate) fn optional(explorer: &Explorer, list: Target) -> Result<Option<Self>, HttpError> {
        match Self::first(explorer, list) {
            Ok(list) => Ok(Some(list)),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl<T> Listing<T> {
    /// Length of the whole list.
    pub(crate) fn total(&self) -> u64 {
        self.cursors.total
    }

    /// Links to the neighbouring pages of `page`, which is the page with its other parameters.
    pub(crate) fn pager(&self, page: &Target) -> Markup {
        let link =
            |key: &str| (!key.is_empty()).then(|| page.clone().with("pagination.key", key).into_string());
        let (previous, next) = (link(&self.cursors.previous_key), link(&self.cursors.next_key));
        html! {
            nav.pager aria-label="Pages of the list" {
                span.total { (count(self.total())) " in total" }
                @if previous.is_some() || next.is_some() {
                    span.steps {
                        @if previous.is_some() { a href=(page.clone().into_string()) { "First" } }
                        @if let Some(href) = previous { a rel="prev" href=(href) { "← Previous" } }
                        @if let Some(href) = next { a rel="next" href=(href) { "Next →" } }
                    }
                }
            }
        }
    }
}
