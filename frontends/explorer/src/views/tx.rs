//! One transaction, with both of its halves: what it did, what it moved, its messages and events, and what the EVM says of it.

use http::StatusCode;
use maud::{Markup, html};
use query::signed_tx::SignedTx;
use query::v1::{Event, GetTxResponse, IbcPacket, Transfer, Tx};
use web::call::Call;
use web::endpoint::Param;
use web::http_error::HttpError;

use super::bridge::coverage;
use super::evm_half::EvmHalf;
use super::messages::{MESSAGES, messages, pretty};
use super::summary::{self, Known};
use super::{lookup, movements, packets, revert, rows};
use crate::explorer::Explorer;
use crate::format::{
    account, block, block_data, clipped, copied, count, none, outcome, pre, short, text, whole_account,
    whole_time,
};
use crate::layout::{Page, facts, section};
use crate::listing::{KEY, Listing};
use crate::record;
use crate::target::{self, Target, encoded};
use crate::view::{Response, View};

/// Events that a page shows; the JSON has all.
const EVENTS: usize = 200;

/// Movements and packets of a transaction that a page shows.
const MOVED: &str = "100";

pub(crate) struct TxPage;

impl View for TxPage {
    const PATH: &'static str = "/tx/{hash}";
    const SUMMARY: &'static str =
        "One transaction with its Cosmos and its EVM half; either hash leads to it.";
    const PARAMS: &'static [Param] = &[Param::path("hash", "Hex, with or without 0x."), KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let hash = call.text("hash");
        let request = format!("/indexer/tx/v1/txs/{}", encoded(hash));
        let raw = match explorer.read_bytes(&request) {
            Err(error) if error.status() == StatusCode::NOT_FOUND => {
                let page = lookup::evm_tx(explorer, hash)?;
                return page.map(Response::Redirect).ok_or(error);
            }
            raw => raw?,
        };
        let response: GetTxResponse = serde_json::from_slice(&raw).map_err(HttpError::internal)?;
        let tx = response.tx.unwrap_or_default();
        // A transaction has one address, whatever spelling of its hash is asked for.
        if tx.txhash != hash && lookup::is_hash(&tx.txhash) {
            return Ok(Response::Redirect(target::tx(&tx.txhash)));
        }
        Ok(Whole::read(explorer, call, tx, request)?.page(explorer, &raw).into())
    }
}

/// All that is known of a transaction.
struct Whole {
    tx: Tx,
    signed: SignedTx,
    evm: Option<EvmHalf>,
    transfers: Option<Listing<Transfer>>,
    packets: Option<Listing<IbcPacket>>,
    covered_by: Markup,
    /// The JSON requests.
    requests: Vec<String>,
}

impl Whole {
    fn read(explorer: &Explorer, call: &Call<'_>, tx: Tx, request: String) -> Result<Self, HttpError> {
        let evm = explorer.evm_half(&tx.txhash)?;
        let evm = evm.map(|hash| EvmHalf::read(explorer, call, &hash)).transpose()?;
        let of = |kind: &str| {
            let list = Target::new(format!("/indexer/{kind}/by_tx/{}", tx.txhash));
            list.with("pagination.reverse", "false").with("pagination.limit", MOVED)
        };
        let transfers = Listing::<Transfer>::optional(explorer, of("ledger/v1/transfers"))?;
        let packets = Listing::<IbcPacket>::optional(explorer, of("ibc/v1/packets"))?;
        let (covered_by, coverage_requests) = coverage(explorer, tx.height)?;
        let mut requests = vec![request];
        requests.extend(evm.iter().flat_map(EvmHalf::requests));
        requests.extend(transfers.iter().map(|list| list.request.clone()));
        requests.extend(packets.iter().map(|list| list.request.clone()));
        requests.extend(coverage_requests);
        let signed = record::signed(&tx);
        Ok(Self { tx, signed, evm, transfers, packets, covered_by, requests })
    }

    fn page(self, explorer: &Explorer, raw: &[u8]) -> Page {
        let messages = messages(explorer, &self.signed.body.messages);
        let body = html! {
            (self.summary(explorer))
            section.card { (self.facts(explorer)) (self.error()) }
            @if let Some(list) = self.transfers.as_ref().filter(|list| !list.rows.is_empty()) {
                (section("Token transfers", &html! {
                    (movements::of_tx(explorer, &list.rows))
                    (more(list))
                }))
            }
            @if let Some(list) = self.packets.as_ref().filter(|list| !list.rows.is_empty()) {
                (section("Packets", &html! {
                    (packets::rows(explorer, &list.rows, true))
                    (more(list))
                }))
            }
            (section(&format!("Messages ({})", self.signed.body.messages.len()), &messages))
            @if let Some(evm) = &self.evm { (evm.sections(&Target::new(target::tx(&self.tx.txhash)))) }
            (section(&format!("Events ({})", self.tx.events.len()), &events_of(explorer, &self.tx.events)))
            section.card {
                details { summary { "Raw JSON" } (pre(&pretty(raw))) }
                @if let Some(evm) = &self.evm { details { summary { "Raw JSON of the EVM" } (pre(&pretty(&evm.raw))) } }
            }
        };
        let about = short(&self.tx.txhash);
        Page { title: "Transaction".to_owned(), about, body, requests: self.requests }
    }

    /// What it did, in words.
    fn summary(&self, explorer: &Explorer) -> Markup {
        if record::is_block_data(&self.tx) || self.signed.body.messages.is_empty() {
            return html! {};
        }
        let moved = self.transfers.as_ref().map(|list| list.rows.as_slice()).unwrap_or_default();
        let moved: Vec<_> = moved.iter().filter(|of| !of.kind.starts_with("fee")).cloned().collect();
        let known = Known {
            explorer,
            transfers: &moved,
            packets: self.packets.as_ref().map(|list| list.rows.as_slice()).unwrap_or_default(),
            evm: self.evm.as_ref().map(|half| &half.tx),
            decoded: self.evm.as_ref().map_or(&serde_json::Value::Null, |half| &half.explained),
        };
        let did = known.summary(&self.signed.body.messages);
        let failed = self.tx.code != 0;
        html! {
            p.summary {
                @if failed {
                    span.badge.bad { "Failed" } " " bdi { (revert::of_log(explorer, self.evm.as_ref().map_or("", |half| &half.tx.to), &self.tx.raw_log)) }
                    span.dim { " – it was to do this: " (did) }
                } @else { (did) }
            }
        }
    }

    fn facts(&self, explorer: &Explorer) -> Markup {
        let (tx, fee) = (&self.tx, &self.signed.auth_info.fee);
        let is_block_data = record::is_block_data(tx);
        let from = self.evm.as_ref().map(EvmHalf::from).filter(|from| !from.is_empty());
        let from = from.map_or_else(|| signer(explorer, &self.signed), whole_account);
        let mut all = vec![
            ("Hash", copied(&tx.txhash)),
            (
                "Result",
                html! {
                    @if is_block_data { (block_data()) } @else { (outcome(tx.code == 0)) }
                    @if tx.code != 0 { " " span.dim { (code(tx)) } }
                },
            ),
            ("Height", block(tx.height)),
            ("Time", whole_time(&tx.timestamp)),
            ("Covered by", self.covered_by.clone()),
            ("From", from),
            ("Fee", rows::coins(explorer, &fee.amount)),
            ("Gas", html! { (count(tx.gas_used)) " used of " (count(tx.gas_wanted)) " wanted" }),
            ("Memo", text(&self.signed.body.memo)),
            ("Fee payer", account(&fee.payer)),
            ("Fee granter", account(&fee.granter)),
        ];
        if let Some(evm) = &self.evm {
            // The value is in units of the token that fees are paid in.
            let unit = fee.amount.first().and_then(|coin| explorer.unit(&coin.denom));
            all.extend(evm.facts(unit.as_ref().map_or("", |unit| &unit.symbol)));
        }
        facts(all)
    }

    fn error(&self) -> Markup {
        let log = clipped(&self.tx.raw_log);
        html! {
            @if record::is_block_data(&self.tx) {
                p.dim { "The proposer put it into the block; the chain executes no message of it: " bdi { (log) } }
            } @else if self.tx.code != 0 {
                h2 { "Error" } pre.problem tabindex="0" { (log) }
            }
        }
    }
}

/// How many rows a page leaves out.
fn more<T>(list: &Listing<T>) -> Markup {
    let left = list.total().saturating_sub(list.rows.len() as u64);
    html! { @if left > 0 { p.dim { (count(left)) " more; the JSON has all." } } }
}

/// The account of the first message.
fn signer(explorer: &Explorer, signed: &SignedTx) -> Markup {
    let first = signed.body.messages.first().and_then(|message| serde_json::from_str(message.get()).ok());
    let first: serde_json::Value = first.unwrap_or_default();
    let signer = summary::signer(&first);
    if explorer.is_account(signer) { whole_account(signer) } else { none() }
}

/// The code of a failure, with its codespace if the chain names one: the SDK's name for none is `undefined`.
fn code(tx: &Tx) -> Markup {
    let codespace = Some(tx.codespace.as_str()).filter(|name| !["", "undefined"].contains(name));
    html! { "code " (tx.code) @if let Some(name) = codespace { " of " bdi { (clipped(name)) } } }
}

fn events_of(explorer: &Explorer, events: &[Event]) -> Markup {
    html! {
        @if events.is_empty() { p.empty { "There are no events." } }
        @for event in events.iter().take(EVENTS) {
            details.event open[events.len() <= 8] {
                summary { bdi { (chain::truncated(&event.r#type, 80)) } span.dim { " " (event.attributes.len()) } }
                dl.facts {
                    @for attribute in event.attributes.iter().take(MESSAGES) {
                        div {
                            dt { bdi { (chain::truncated(&attribute.key, 60)) } }
                            dd { (value(explorer, &attribute.value)) }
                        }
                    }
                }
            }
        }
        @if events.len() > EVENTS { p.dim { "The first " (EVENTS) " of " (events.len()) "; the JSON has all." } }
    }
}

/// A value of an event.
fn value(explorer: &Explorer, value: &str) -> Markup {
    match value {
        "" => html! { span.none { "(empty)" } },
        _ if explorer.is_account(value) => whole_account(value),
        _ => text(value),
    }
}
