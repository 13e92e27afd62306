//! The bridges of a layer one: their outputs, claims, deposits and batches.

use http::StatusCode;
use maud::{Markup, html};
use query::v1::{Bridge, BridgeClaim, BridgeDeposit, BridgeOutput, Tx};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::deposits;
use crate::explorer::Explorer;
use crate::format::{account, block, cell, clipped, coin, count, none, time, tx};
use crate::layout::{Page, empty, section, sentence, table};
use crate::listing::{KEY, Listing};
use crate::target::{Target, encoded};
use crate::view::{Response, View};
use crate::views::rows;

/// Lists of a bridge: the value in the query, and the label.
const LISTS: [(&str, &str); 4] =
    [("outputs", "Outputs"), ("claims", "Claims"), ("deposits", "Deposits"), ("batches", "Batches")];

/// The bridges of this chain, and the request; `None` if it has none.
pub(super) fn bridges(
    explorer: &Explorer,
    call: &Call<'_>,
    page: Target,
) -> Result<Option<(Markup, String)>, HttpError> {
    let bridges = Listing::<Bridge>::read(explorer, call, Target::new("/indexer/bridge/v1/bridges"))?;
    if bridges.total() == 0 {
        return Ok(None);
    }
    let row = |of: &Bridge| {
        let number = |number: u64| {
            if number == 0 {
                none()
            } else {
                html! { span.num { (count(number)) } }
            }
        };
        vec![
            html! { a.num href=(Target::new(format!("/bridges/{}", of.bridge_id)).into_string()) { (of.bridge_id) } },
            number(of.last_output),
            number(of.last_deposit),
            account(&of.proposer),
            account(&of.challenger),
            account(&of.submitter),
            cell(&of.batch_chain),
        ]
    };
    let rows: Vec<_> = bridges.rows.iter().map(row).collect();
    let columns = [
        "Bridge",
        ">Last output",
        ">Last deposit",
        "~Proposer",
        "~Challenger",
        "~Submitter of batches",
        "~Batches on",
    ];
    let body = section(
        "Bridges of this layer one",
        &html! { (table("Bridges", &columns, &rows, "")) (bridges.pager(&page)) },
    );
    Ok(Some((body, bridges.request)))
}

pub(crate) struct LayerOneBridgePage;

impl View for LayerOneBridgePage {
    const PATH: &'static str = "/bridges/{bridge_id}";
    const SUMMARY: &'static str = "One bridge of a layer one: its outputs, claims, deposits and batches.";
    const PARAMS: &'static [Param] = &[
        Param::path_of("bridge_id", Type::Between(1, i64::MAX), "Its number."),
        Param::query_or(
            "list",
            Type::OneOf(&["outputs", "claims", "deposits", "batches"]),
            "outputs",
            "The list.",
        ),
        KEY,
    ];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let number = call.text("bridge_id");
        let chosen = call.first("list").unwrap_or(LISTS[0].0);
        let (name, label) = LISTS.into_iter().find(|(name, _)| *name == chosen).unwrap_or(LISTS[0]);
        let page = |name: &str| {
            let page = Target::new(format!("/bridges/{}", encoded(number)));
            if name == LISTS[0].0 { page } else { page.with("list", name) }
        };
        let (list, request) = list(explorer, call, name, &page(name))?;
        let body = html! {
            nav.tabs aria-label="Lists of the bridge" {
                @for (other, label) in LISTS {
                    a href=(page(other).into_string()) aria-current=[(other == name).then_some("page")] { (label) }
                }
            }
            (section(label, &list))
        };
        let about = if name == LISTS[0].0 { String::new() } else { format!("– {label}") };
        let title = format!("Bridge {}", chain::truncated(number, 20));
        Ok(Page { title, about, body, requests: request.into_iter().collect() }.into())
    }
}

/// A list of a bridge, and its request.
fn list(
    explorer: &Explorer,
    call: &Call<'_>,
    name: &str,
    page: &Target,
) -> Result<(Markup, Option<String>), HttpError> {
    let list = Target::new(format!("/indexer/bridge/v1/{name}")).with("bridge_id", call.text("bridge_id"));
    let (rows, pager, request) = match name {
        "claims" => {
            let claims = Listing::<BridgeClaim>::read(explorer, call, list)?;
            (claim_rows(explorer, &claims.rows), claims.pager(page), claims.request)
        }
        "deposits" => {
            let deposits = Listing::<BridgeDeposit>::read(explorer, call, list)?;
            (deposits::initiated(explorer, &deposits.rows), deposits.pager(page), deposits.request)
        }
        "batches" => match Listing::<Tx>::read(explorer, call, list) {
            // Who submits them is not known; an unknown bridge is one of the other lists.
            Err(error) if error.status() == StatusCode::NOT_FOUND => {
                return Ok((empty(&clipped(sentence(error.message()))), None));
            }
            batches => {
                let batches = batches?;
                (rows::txs(explorer, &batches.rows), batches.pager(page), batches.request)
            }
        },
        _ => {
            let outputs = Listing::<BridgeOutput>::read(explorer, call, list)?;
            (output_rows(&outputs.rows), outputs.pager(page), outputs.request)
        }
    };
    Ok((html! { (rows) (pager) }, Some(request)))
}

fn output_rows(outputs: &[BridgeOutput]) -> Markup {
    let row = |of: &BridgeOutput| {
        vec![
            html! { span.num { (of.output_index) } },
            // A block of the rollup has no page here.
            html! { span.num { (count(of.l2_block_number)) } },
            html! { @if of.deleted { span.badge.bad { "Deleted" } } @else { span.badge.good { "Proposed" } } },
            html! { @if of.former_roots.is_empty() { (none()) } @else { (of.former_roots.len()) } },
            block(of.l1_height),
            tx(&of.l1_txhash),
            time(&of.l1_time),
        ]
    };
    let rows: Vec<_> = outputs.iter().map(row).collect();
    let columns =
        ["Output", ">Covers up to", "State", "~>Deleted before", ">Block", "Transaction", "~Proposed"];
    table("Outputs", &columns, &rows, "There are no outputs.")
}

fn claim_rows(explorer: &Explorer, claims: &[BridgeClaim]) -> Markup {
    let row = |of: &BridgeClaim| {
        vec![
            html! { span.num { (of.l2_sequence) } },
            html! { span.num { (of.output_index) } },
            cell(&of.from),
            cell(&of.to),
            coin(&of.amount, &of.l1_denom, explorer.unit(&of.l1_denom).as_ref()),
            block(of.height),
            tx(&of.txhash),
        ]
    };
    let rows: Vec<_> = claims.iter().map(row).collect();
    let columns = [">Withdrawal", ">Output", "~From", "~To", ">Amount", ">Block", "Transaction"];
    table("Claims", &columns, &rows, "There are no claims.")
}
