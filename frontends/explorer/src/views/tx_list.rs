//! A list of Cosmos transactions, without the rows that are none.
//!
//! Chains with vote extensions (the L1) have a row of block data in every block. Such a row has no message, so the list of
//! those with any message is the list without them: it has cursors and a total of its own.

use maud::{Markup, html};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::rows;
use crate::explorer::Explorer;
use crate::format::count;
use crate::listing::{KEY, Listing, ROWS};
use crate::record;
use crate::target::Target;
use query::v1::Tx;

/// Filter by message types.
pub(crate) const MSGS: Param = Param::query("msgs", Type::String, "Message types, separated by commas.");

/// Whether block data is listed too.
const BLOCK_DATA: Param = Param::query_or(
    "block_data",
    Type::Boolean,
    "false",
    "Whether block data that is not a transaction is listed.",
);

/// The parameters of a page with such a list.
pub(crate) const PARAMS: [Param; 3] = [MSGS, BLOCK_DATA, KEY];

/// Transactions of any message type.
const ANY: &str = "*";

/// A page of transactions.
pub(crate) struct TxList {
    pub(crate) txs: Listing<Tx>,
    /// Rows of block data in the whole list, which the page leaves out.
    pub(crate) hidden: u64,
    /// The page with its parameters, without a cursor.
    page: Target,
    /// The page with block data.
    page_of_all: Target,
}

impl TxList {
    /// The page of `list` that the cursor and the filters of `call` select; `page` is the page that shows it.
    pub(crate) fn read(
        explorer: &Explorer,
        call: &Call<'_>,
        list: Target,
        page: Target,
    ) -> Result<Self, HttpError> {
        Self::read_rows(explorer, call, list, page, ROWS)
    }

    /// As [`Self::read`], with this number of rows.
    pub(crate) fn read_rows(
        explorer: &Explorer,
        call: &Call<'_>,
        list: Target,
        page: Target,
        rows: &str,
    ) -> Result<Self, HttpError> {
        let read = |list| Listing::<Tx>::read_rows(explorer, call, list, rows);
        let (msgs, with_block_data) = (call.first("msgs"), call.boolean("block_data", false));
        let page_of_all = page.clone().with("block_data", "true");
        if with_block_data || msgs.is_some_and(|msgs| msgs != ANY) {
            let txs = read(list.with_some("msgs", msgs))?;
            let page = if with_block_data { page_of_all.clone() } else { page };
            return Ok(Self { txs, hidden: 0, page: page.with_some("msgs", msgs), page_of_all });
        }
        let all = read(list.clone())?;
        if msgs.is_none() && !all.rows.iter().any(record::is_block_data) {
            return Ok(Self { txs: all, hidden: 0, page, page_of_all });
        }
        let txs = read(list.with("msgs", ANY))?;
        let hidden = all.total().saturating_sub(txs.total());
        Ok(Self { txs, hidden, page: page.with("msgs", ANY), page_of_all })
    }

    /// The table with the links to its other pages.
    pub(crate) fn shown(&self, explorer: &Explorer) -> Markup {
        html! { (rows::txs(explorer, &self.txs.rows)) (self.note()) (self.txs.pager(&self.page)) }
    }

    /// How many rows are left out, and where they are.
    pub(crate) fn note(&self) -> Markup {
        html! {
            @if self.hidden > 0 {
                p.dim.more {
                    "Block data that is not a transaction is not listed (" (count(self.hidden)) "). "
                    a href=(self.page_of_all.clone().into_string()) { "Show it" }
                }
            }
        }
    }

    /// The filter by message types, as the form shows it.
    pub(crate) fn filter<'c>(call: &'c Call<'_>) -> Option<&'c str> {
        call.first("msgs").filter(|msgs| *msgs != ANY)
    }
}
