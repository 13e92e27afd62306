//! All Cosmos transactions, and the filter of such lists.

use maud::{Markup, html};
use query::v1::Tx;
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::messages::MESSAGES;
use super::tx_list::{self, TxList};
use crate::explorer::Explorer;
use crate::format::clipped;
use crate::layout::Page;
use crate::record;
use crate::target::{self, Target, encoded};
use crate::view::{Response, View};

pub(crate) struct TxsPage;

impl View for TxsPage {
    const PATH: &'static str = "/txs";
    const SUMMARY: &'static str = "All Cosmos transactions.";
    const PARAMS: &'static [Param] = &{
        let [msgs, block_data, key] = tx_list::PARAMS;
        [
            msgs,
            block_data,
            key,
            Param::query("a", Type::String, "Leads to the account: the form of Etherscan."),
            Param::query("block", Type::String, "Leads to the block: the form of Etherscan."),
        ]
    };

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let elsewhere = call.first("a").map(target::account);
        let elsewhere = elsewhere.or_else(|| call.first("block").map(|name| target::block(encoded(name))));
        if let Some(page) = elsewhere {
            return Ok(Response::Redirect(page));
        }
        let list = Target::new("/indexer/tx/v1/txs");
        let list = TxList::read(explorer, call, list, Target::new(Self::PATH))?;
        let msgs = TxList::filter(call);
        let body = html! {
            form.filter method="get" action=(Self::PATH) { (msgs_input(msgs, &list.txs.rows)) button type="submit" { "Filter" } }
            section.card #list data-live data-stream="/indexer/stream/v1/blocks" { (list.shown(explorer)) }
        };
        let about = msgs.map(|msgs| chain::truncated(msgs, 40)).unwrap_or_default();
        Ok(Page { title: "Transactions".to_owned(), about, body, requests: vec![list.txs.request] }.into())
    }
}

/// The input of a filter by message types, with the types of `txs` as suggestions.
pub(super) fn msgs_input(msgs: Option<&str>, txs: &[Tx]) -> Markup {
    let mut types: Vec<_> = txs.iter().flat_map(|tx| record::types(&record::signed(tx).body)).collect();
    types.sort_unstable();
    types.dedup();
    html! {
        label { "Message type "
            input type="text" name="msgs" value=[msgs.map(clipped)] list="types" placeholder="cosmos.bank.v1beta1.MsgSend" spellcheck="false";
        }
        datalist #types { @for name in types.iter().take(MESSAGES) { option value=(name.trim_start_matches('/')) {} } }
    }
}
