//! The rollup's bridge: its withdrawals with their states, one withdrawal with its proof, one output.

mod coverage;
mod deposits;
mod layer_one;

pub(crate) use self::coverage::coverage;
pub(crate) use self::deposits::DepositsPage;
pub(super) use self::deposits::deposit_rows;
pub(crate) use self::layer_one::LayerOneBridgePage;

use http::StatusCode;
use maud::{Markup, html};
use query::v1::{
    BridgeOutput, BridgeWithdrawal, GetBridgeInfoResponse, GetBridgeOutputResponse, ListBridgeOutputsResponse,
};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::format::{block, cell, coin, count, duration, none, pre, tx, whole_account, whole_time};
use crate::layout::{Page, absent, empty, facts, section, table};
use crate::listing::{KEY, Listing};
use crate::target::{Target, encoded};
use crate::view::{Response, View};

const INFO: &str = "/indexer/bridge/v1/info";

pub(crate) struct BridgePage;

impl View for BridgePage {
    const PATH: &'static str = "/bridge";
    const SUMMARY: &'static str =
        "The rollup's bridge, its newest outputs, and its withdrawals; on a layer one its bridges.";
    const PARAMS: &'static [Param] = &[KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let info: GetBridgeInfoResponse = match explorer.read(INFO) {
            Err(error) if error.status() == StatusCode::NOT_FOUND => {
                return Ok(absent("Bridge", &error).into());
            }
            info => info?,
        };
        if (info.bridge_id, info.last_withdrawal, info.last_deposit) == (0, 0, 0) {
            let bridges = layer_one::bridges(explorer, call, Target::new(Self::PATH))?;
            let is_layer_one = bridges.is_some();
            let (body, request) = bridges.unwrap_or_else(|| {
                (html! { section.card { (empty("No bridge of this chain is known.")) } }, INFO.to_owned())
            });
            let title = if is_layer_one { "Bridges" } else { "Bridge" }.to_owned();
            return Ok(Page { title, about: String::new(), body, requests: vec![request] }.into());
        }
        let outputs_request = "/indexer/bridge/v1/outputs?pagination.limit=10".to_owned();
        let outputs: ListBridgeOutputsResponse = explorer.read(&outputs_request)?;
        let list = Target::new("/indexer/bridge/v1/withdrawals");
        let withdrawals = Listing::<BridgeWithdrawal>::read(explorer, call, list)?;
        let body = html! {
            @if info.mismatch > 0 {
                p.problem role="alert" {
                    "Output " a href=(output_path(info.mismatch)) { (info.mismatch) }
                    " has another root than follows from the index: the output is false, or this database is."
                }
            }
            section.card { (state(&info)) }
            (section("Newest outputs", &output_rows(&outputs.outputs)))
            (section("Withdrawals", &html! {
                (withdrawal_rows(explorer, &withdrawals.rows))
                (withdrawals.pager(&Target::new(Self::PATH)))
            }))
        };
        let requests = vec![INFO.to_owned(), outputs_request, withdrawals.request];
        Ok(Page { title: "Bridge".to_owned(), about: String::new(), body, requests }.into())
    }
}

fn state(info: &GetBridgeInfoResponse) -> Markup {
    if !info.l1_known {
        return html! {
            p.empty { "No reply of the layer one is stored yet, so no withdrawal has an output." }
            p { a href="/bridge/deposits" { "Deposits" } }
        };
    }
    facts(vec![
        ("Bridge", html! { (info.bridge_id) " on " (cell(&info.l1_chain_id)) }),
        ("Claims after", html! { (duration(info.finalization_seconds)) }),
        ("Last output", output_link(info.last_output)),
        ("Last final output", output_link(info.last_final_output)),
        ("Withdrawals", html! { (count(info.last_withdrawal)) }),
        ("Deposits", html! { a.num href="/bridge/deposits" { (count(info.last_deposit)) } }),
        ("Accepts deposits", html! { @if info.disabled { "no: the bridge is disabled" } @else { "yes" } }),
    ])
}

fn output_rows(outputs: &[BridgeOutput]) -> Markup {
    let row = |output: &BridgeOutput| {
        vec![
            output_link(output.output_index),
            block(output.l2_block_number),
            html! { (output.withdrawals.map_or_else(none, |withdrawals| html! { (count(withdrawals)) })) },
            verified(output),
            html! { @if output.r#final { "final" } @else { (output.final_at.as_deref().map_or_else(none, whole_time)) } },
        ]
    };
    let rows: Vec<_> = outputs.iter().map(row).collect();
    let columns = ["Output", ">Covers up to", ">Withdrawals", "~Root", "Final"];
    table("Outputs", &columns, &rows, "There are no outputs.")
}

pub(super) fn withdrawal_rows(explorer: &Explorer, withdrawals: &[BridgeWithdrawal]) -> Markup {
    let row = |withdrawal: &BridgeWithdrawal| {
        let path = format!("/bridge/withdrawal/{}", withdrawal.sequence);
        vec![
            html! { a.num href=(path) { (withdrawal.sequence) } },
            cell(&withdrawal.from),
            cell(&withdrawal.to),
            amount(explorer, withdrawal),
            html! { (withdrawal.state) },
            block(withdrawal.tx_height),
        ]
    };
    let rows: Vec<_> = withdrawals.iter().map(row).collect();
    let columns = ["Withdrawal", "~From", "~To", ">Amount", "State", ">Block"];
    table("Withdrawals", &columns, &rows, "There are no withdrawals.")
}

fn amount(explorer: &Explorer, withdrawal: &BridgeWithdrawal) -> Markup {
    let amount = withdrawal.amount.clone().unwrap_or_default();
    coin(&amount.amount, &amount.denom, explorer.unit(&amount.denom).as_ref())
}

fn output_path(number: u64) -> String {
    format!("/bridge/output/{number}")
}

fn output_link(number: u64) -> Markup {
    if number == 0 {
        none()
    } else {
        html! { a.num href=(output_path(number)) { (number) } }
    }
}

fn verified(output: &BridgeOutput) -> Markup {
    match output.verified {
        Some(true) => html! { "equals ours" },
        Some(false) => html! { span.problem { "differs from ours" } },
        None => none(),
    }
}

pub(crate) struct WithdrawalPage;

impl View for WithdrawalPage {
    const PATH: &'static str = "/bridge/withdrawal/{sequence}";
    const SUMMARY: &'static str = "One withdrawal: where it is, and what a claim needs.";
    const PARAMS: &'static [Param] = &[Param::path_of("sequence", Type::Between(1, i64::MAX), "Its number.")];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let text = call.text("sequence");
        let number = text.parse::<u64>().ok().filter(|number| (1..u64::MAX).contains(number));
        let unknown = || {
            HttpError::not_found(format!("[NOT_FOUND] withdrawal not found: {}", chain::truncated(text, 80)))
        };
        let number = number.ok_or_else(unknown)?;
        let info: GetBridgeInfoResponse = explorer.read(INFO)?;
        if number > info.last_withdrawal {
            return Err(unknown());
        }
        // Newest first, the list has it after all later ones.
        let offset = (info.last_withdrawal - number).to_string();
        let list = Target::new("/indexer/bridge/v1/withdrawals");
        let list = list.with("pagination.offset", offset).with("pagination.limit", "1");
        let found = Listing::<BridgeWithdrawal>::first(explorer, list)?;
        let withdrawal = found.rows.first().filter(|found| found.sequence == number).ok_or_else(unknown)?;
        let executor = format!("/indexer/bridge/v1/withdrawal/{}", encoded(text));
        let body = html! {
            section.card {
                (facts(vec![
                    ("State", html! { (withdrawal.state) }),
                    ("From", whole_account(&withdrawal.from)),
                    ("To, on the layer one", cell(&withdrawal.to)),
                    ("Amount", amount(explorer, withdrawal)),
                    ("Initiated", html! { (whole_time(&withdrawal.tx_time)) ", block " (block(withdrawal.tx_height)) }),
                    ("Transaction", if withdrawal.tx_hash.starts_with(OF_NOTHING) { html! { "of the block itself" } } else { tx(&withdrawal.tx_hash) }),
                    ("Covered by", output_link(withdrawal.output_index)),
                    ("Claimed by, on the layer one", if withdrawal.claimed_tx.is_empty() { none() } else { html! { span.mono { (withdrawal.claimed_tx) } } }),
                    ("Can be claimed", if withdrawal.claimable_at.is_empty() { none() } else { whole_time(&withdrawal.claimable_at) }),
                ]))
            }
            @if !withdrawal.withdrawal_proofs.is_empty() {
                (section("Proof", &html! {
                    p.dim { "Fields of MsgFinalizeTokenWithdrawal, in base64." }
                    (pre(&withdrawal.withdrawal_proofs.join("\n")))
                    (facts(vec![
                        ("Version", html! { span.mono { (withdrawal.version) } }),
                        ("Storage root", html! { span.mono { (withdrawal.storage_root()) } }),
                        ("Last block hash", html! { span.mono { (withdrawal.last_block_hash()) } }),
                    ]))
                }))
            }
        };
        let title = format!("Withdrawal {number}");
        let requests = vec![INFO.to_owned(), found.request, executor];
        Ok(Page { title, about: String::new(), body, requests }.into())
    }
}

/// The hash that stands for no transaction begins so: that of no bytes.
const OF_NOTHING: &str = "E3B0C44298FC1C14";

pub(crate) struct OutputPage;

impl View for OutputPage {
    const PATH: &'static str = "/bridge/output/{output_index}";
    const SUMMARY: &'static str = "One output of the rollup on its layer one.";
    const PARAMS: &'static [Param] =
        &[Param::path_of("output_index", Type::Between(1, i64::MAX), "Its number.")];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let request = format!("/indexer/bridge/v1/outputs/{}", encoded(call.text("output_index")));
        let output = explorer.read::<GetBridgeOutputResponse>(&request)?.output.unwrap_or_default();
        let body = html! {
            section.card {
                (facts(vec![
                    ("Covers up to block", block(output.l2_block_number)),
                    ("Output root", html! { span.mono { (output.output_root) } }),
                    ("Root", verified(&output)),
                    ("Withdrawals", output.withdrawals.map_or_else(none, |withdrawals| html! { (count(withdrawals)) })),
                    ("Proposed", html! { (whole_time(&output.l1_time)) ", block " (count(output.l1_height)) " of the layer one" }),
                    ("Final", output.final_at.as_deref().map_or_else(none, whole_time)),
                    ("Deleted", if output.deleted { html! { "yes, and not proposed again" } } else { none() }),
                    ("Roots deleted before", if output.former_roots.is_empty() { none() } else { pre(&output.former_roots.join("\n")) }),
                ]))
            }
        };
        let title = format!("Output {}", output.output_index);
        Ok(Page { title, about: String::new(), body, requests: vec![request] }.into())
    }
}
