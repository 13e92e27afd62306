//! Deposits: those that a rollup has finalized, or those that a layer one has taken.

use maud::{Markup, html};
use query::v1::BridgeDeposit;
use web::call::Call;
use web::endpoint::Param;
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::format::{block, cell, coin, count, tx};
use crate::layout::{Page, section, table};
use crate::listing::{KEY, Listing};
use crate::target::Target;
use crate::view::{Response, View};

pub(crate) struct DepositsPage;

impl View for DepositsPage {
    const PATH: &'static str = "/bridge/deposits";
    const SUMMARY: &'static str = "Deposits from the layer one, with the reason where one failed.";
    const PARAMS: &'static [Param] = &[KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let list = Target::new("/indexer/bridge/v1/deposits");
        let deposits = Listing::<BridgeDeposit>::read(explorer, call, list)?;
        let body = section(
            "Deposits from the layer one",
            &html! {
                (deposit_rows(explorer, &deposits.rows))
                (deposits.pager(&Target::new(Self::PATH)))
            },
        );
        let requests = vec![deposits.request];
        Ok(Page { title: "Deposits".to_owned(), about: String::new(), body, requests }.into())
    }
}

/// The table of deposits that a rollup has finalized.
pub(in crate::views) fn deposit_rows(explorer: &Explorer, deposits: &[BridgeDeposit]) -> Markup {
    let row = |of: &BridgeDeposit| {
        let mut row = cells(explorer, of, &of.l2_denom);
        row.extend([outcome(of), html! { span.num { (count(of.l1_height)) } }]);
        row
    };
    let rows: Vec<_> = deposits.iter().map(row).collect();
    let columns =
        ["Deposit", "~From", "~To", ">Amount", ">Block", "Transaction", "Outcome", ">Layer one's block"];
    table("Deposits", &columns, &rows, "There are no deposits.")
}

/// The table of deposits that a layer one has taken.
pub(super) fn initiated(explorer: &Explorer, deposits: &[BridgeDeposit]) -> Markup {
    let rows: Vec<_> = deposits.iter().map(|of| cells(explorer, of, &of.l1_denom)).collect();
    let columns = ["Deposit", "~From", "~To", ">Amount", ">Block", "Transaction"];
    table("Deposits", &columns, &rows, "There are no deposits.")
}

/// What a row of either chain has: the amount is of the denom here.
fn cells(explorer: &Explorer, of: &BridgeDeposit, denom: &str) -> Vec<Markup> {
    vec![
        html! { span.num { (of.l1_sequence) } },
        cell(&of.from),
        cell(&of.to),
        coin(&of.amount, denom, explorer.unit(denom).as_ref()),
        block(of.height),
        tx(&of.txhash),
    ]
}

fn outcome(of: &BridgeDeposit) -> Markup {
    match &*of.result {
        "arrived" => html! { span.badge.good { "Arrived" } },
        "hook_failed" => html! { span.badge.none { "Arrived, hook failed" } " " (cell(&of.reason)) },
        "refunded" => html! { span.badge.bad { "Refunded" } " " (cell(&of.reason)) },
        other => cell(other),
    }
}
