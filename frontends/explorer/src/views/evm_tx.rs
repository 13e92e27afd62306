//! All EVM transactions, and one of them. Its page is that of the Cosmos transaction that carries it, as long as that is known.

use http::StatusCode;
use maud::html;
use query::v1::EvmTx;
use web::call::Call;
use web::endpoint::Param;
use web::http_error::HttpError;

use super::bridge::coverage;
use super::evm_half::EvmHalf;
use super::messages::pretty;
use super::{lookup, rows};
use crate::explorer::Explorer;
use crate::format::{block, none, outcome, pre, quantity, short, whole_account};
use crate::layout::{Page, facts};
use crate::listing::{KEY, Listing};
use crate::target::{self, Target};
use crate::view::{Response, View};

pub(crate) struct EvmTxsPage;

impl View for EvmTxsPage {
    const PATH: &'static str = "/evm-txs";
    const SUMMARY: &'static str = "All EVM transactions.";
    const PARAMS: &'static [Param] = &[KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let txs = Listing::<EvmTx>::read(explorer, call, Target::new("/indexer/tx/v1/evm-txs"))?;
        let body = html! {
            section.card #list data-live data-stream="/indexer/stream/v1/blocks" { (rows::evm_txs(explorer, &txs.rows)?) (txs.pager(&Target::new(Self::PATH))) }
        };
        Ok(Page {
            title: "EVM transactions".to_owned(),
            about: String::new(),
            body,
            requests: vec![txs.request],
        }
        .into())
    }
}

pub(crate) struct EvmTxPage;

impl View for EvmTxPage {
    const PATH: &'static str = "/evm-tx/{hash}";
    const SUMMARY: &'static str =
        "One EVM transaction; leads to the page that it shares with its Cosmos half.";
    const PARAMS: &'static [Param] = &[Param::path("hash", "Hex, with or without 0x."), KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let hash = call.text("hash");
        if let Some(cosmos) = explorer.cosmos_half(hash)? {
            return Ok(Response::Redirect(target::tx(&cosmos)));
        }
        let half = match EvmHalf::read(explorer, call, hash) {
            Err(error) if error.status() == StatusCode::NOT_FOUND => {
                let page = lookup::tx(explorer, hash)?;
                return page.map(Response::Redirect).ok_or(error);
            }
            half => half?,
        };
        let tx = &half.tx;
        let covered = quantity(&tx.block_number).map(|height| coverage(explorer, height)).transpose()?;
        let (covered_by, coverage_requests) = covered.unwrap_or_else(|| (none(), Vec::new()));
        let mut all = vec![
            ("Result", outcome(half.succeeded())),
            ("Height", quantity(&tx.block_number).map_or_else(none, block)),
            ("Covered by", covered_by),
            ("From", whole_account(half.from())),
        ];
        all.extend(half.facts(""));
        let body = html! {
            section.card { (facts(all)) }
            (half.sections(&Target::new(target::evm_tx(&tx.transaction_hash))))
            section.card { details { summary { "Raw JSON" } (pre(&pretty(&half.raw))) } }
        };
        let requests = half.requests().into_iter().chain(coverage_requests).collect();
        let about = short(&tx.transaction_hash);
        Ok(Page { title: "EVM transaction".to_owned(), about, body, requests }.into())
    }
}
