//! The first page: lanes of the index, charts, latest blocks and transactions.

use std::ops::Range;

use chain::Timestamp;
use maud::{Markup, html};
use query::activity::{Activity, Period};
use web::call::Call;
use web::http_error::HttpError;

use super::chart::{Axes, Bar, bars};
use super::tx_list::TxList;
use super::{rows, txs};
use crate::activity::LastPeriods;
use crate::explorer::Explorer;
use crate::format::{block, count, duration, time};
use crate::layout::Page;
use crate::layout::section;
use crate::listing::Listing;
use crate::target::Target;
use crate::view::{Response, View};
use query::v1::{Block, GetStatusResponse};

/// Blocks of the charts.
const CHARTED: &str = "60";
/// Rows of the latest blocks and transactions.
const LATEST: usize = 10;
/// An index within so many blocks of the node is at the head.
const AT_HEAD: u64 = 3;

pub(crate) struct Overview;

impl View for Overview {
    const PATH: &'static str = "/";
    const SUMMARY: &'static str = "The state of the index, and the latest blocks and transactions.";

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let status: GetStatusResponse = explorer.read("/status")?;
        let blocks = Target::new("/indexer/block/v1/blocks").with("pagination.limit", CHARTED);
        let blocks = Listing::<Block>::first(explorer, blocks)?;
        let (list, page) = (Target::new("/indexer/tx/v1/txs"), Target::new(txs::TxsPage::PATH));
        let txs = TxList::read_rows(explorer, call, list, page, &LATEST.to_string())?;
        let activity = explorer.activity(status.height)?;
        let latest = &blocks.rows[..blocks.rows.len().min(LATEST)];
        let body = html! {
            div #state data-live data-stream="/indexer/stream/v1/blocks" {
                (summary(explorer, &status, &blocks, &txs))
                (lanes(explorer, &status))
                div.pair { (charts(&blocks.rows, &activity)) }
            }
            div.pair.lists {
                div #latest-blocks data-live {
                    (section("Latest blocks", &html! { (rows::blocks(explorer, latest)) p.more { a href="/blocks" { "All blocks" } } }))
                }
                div #latest-txs data-live {
                    (section("Latest transactions", &html! { (rows::txs(explorer, &txs.txs.rows)) (txs.note()) p.more { a href="/txs" { "All transactions" } } }))
                }
            }
        };
        let requests = vec!["/status".to_owned(), blocks.request, txs.txs.request];
        Ok(Page { title: "Overview".to_owned(), about: String::new(), body, requests }.into())
    }
}

/// The chain in four figures.
fn summary(explorer: &Explorer, status: &GetStatusResponse, blocks: &Listing<Block>, txs: &TxList) -> Markup {
    let last = blocks.rows.first();
    let head = explorer.head();
    html! {
        div.figures {
            (figure("Chain", &html! { bdi { (status.chain_id) } }, &html! { "cairn " (status.version) }))
            (figure("Height", &html! { @if status.height > 0 { (block(status.height)) } @else { "0" } }, &match head {
                Some(head) if head > status.height + AT_HEAD => html! { (count(head - status.height)) " blocks behind the node" },
                Some(_) => html! { "at the head of the chain" },
                None => html! { "indexed" },
            }))
            (figure("Last block", &html! { @if let Some(last) = last { (time(&last.timestamp)) } @else { "none yet" } },
                &html! { @if let Some(average) = average(&blocks.rows) { "a block every " (seconds(average)) } }))
            (figure("Transactions", &html! { (count(txs.txs.total())) }, &html! {
                @if txs.hidden > 0 { "without block data (" (count(txs.hidden)) ")" }
                @else { (count(recent(&blocks.rows))) " in the latest " (count(blocks.rows.len())) " blocks" }
            }))
        }
    }
}

fn figure(name: &str, value: &Markup, note: &Markup) -> Markup {
    html! { div.figure { span.name { (name) } strong { (value) } span.dim { (note) } } }
}

/// Heights of the lanes; while catching up also rate and remaining time.
fn lanes(explorer: &Explorer, status: &GetStatusResponse) -> Markup {
    let target = explorer.head().unwrap_or(status.height).max(status.height);
    let rate = explorer.rate(status.height);
    let mut lanes = vec![("Blocks", status.height, target)];
    // The other lanes follow the blocks.
    lanes.extend(status.internal_tx_height.map(|height| ("Internal transactions", height, status.height)));
    let rich = status.rich_list_height.filter(|_| status.rich_list_off.is_none());
    lanes.extend(rich.map(|height| ("Rich list", height, status.height)));
    html! {
        section.card.lanes {
            h2 { "Index" }
            ul {
                @for (name, height, of) in lanes {
                    li {
                        span { (name) }
                        progress max=(of.max(1)) value=(height.min(of)) aria-label=(format!("{name}: {height} of {of}")) {}
                        span.num { (count(height)) @if of > height { span.dim { " · " (count(of - height)) " behind" } } }
                    }
                }
            }
            @if let Some(why) = &status.rich_list_off { p.dim { "No rich list: " bdi { (why) } } }
            @if target > status.height + AT_HEAD { p.dim { "Catching up" (remaining(rate, target - status.height)) "." } }
        }
    }
}

/// Rate and remaining time.
fn remaining(rate: Option<f64>, behind: u64) -> String {
    // Real heights are below 2^53, and a rate is positive here.
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    match rate {
        Some(rate) if rate > 0.0 => {
            format!(
                " at {} blocks a second, {} left",
                count(rate.round() as u64),
                duration((behind as f64 / rate) as u64)
            )
        }
        Some(_) => ", no block in the last minute".to_owned(),
        None => String::new(),
    }
}

fn charts(blocks: &[Block], activity: &LastPeriods) -> Markup {
    let of_blocks = |title: &str, value: &dyn Fn(&Block) -> f64, shown: &dyn Fn(f64) -> String| {
        let bar = |of: &Block| Bar {
            value: value(of),
            label: format!("Block {}: {}", of.height, shown(value(of))),
        };
        let drawn: Vec<_> = blocks.iter().rev().map(bar).collect();
        let top = shown(blocks.iter().map(value).fold(0.0, f64::max));
        let height = |of: Option<&Block>| of.map(|of| count(of.height)).unwrap_or_default();
        let summary = format!("last {} blocks, up to {top}", blocks.len());
        let axes = Axes { top, ends: [height(blocks.last()), height(blocks.first())] };
        html! { section.card { (bars(title, &summary, &drawn, &axes)) } }
    };
    let whole = |number: f64| count(format!("{number:.0}"));
    html! {
        (of_blocks("Block time", &|of| as_f64(of.block_time), &seconds))
        (of_blocks("Transactions per block", &|of| as_f64(of.tx_count.try_into().unwrap_or(i64::MAX)), &whole))
        (of_blocks("Gas used per block", &|of| of.gas_used.parse().unwrap_or_default(), &whole))
        (of_time(activity))
    }
}

/// What a chart of periods shows: its value, and what it says of it.
struct Shown {
    title: &'static str,
    value: fn(&Period) -> Option<u64>,
    says: fn(&Period) -> String,
}

const TXS: Shown = Shown {
    title: "Transactions",
    value: |of| Some(of.txs),
    says: |of| format!("{} transactions in {} blocks", count(of.txs), count(of.blocks)),
};

const GAS: Shown = Shown {
    title: "Gas used",
    value: |of| of.activity.map(|of| of.gas),
    says: |of| format!("{} gas", count(of.activity.map_or(0, |of| of.gas))),
};

const ACCOUNTS: Shown = Shown {
    title: "Accounts that signed",
    value: |of| of.activity.map(|of| of.accounts),
    says: |of| {
        let Activity { accounts, new_accounts, .. } = of.activity.unwrap_or_default();
        format!("{} accounts, {} for the first time", count(accounts), count(new_accounts))
    },
};

/// Charts of hours and days; of gas and accounts with the index `activity` only.
fn of_time(activity: &LastPeriods) -> Markup {
    html! {
        @for shown in [TXS, GAS, ACCOUNTS] {
            (of_periods(&shown, "per hour", &activity.hours, 5..16))
            (of_periods(&shown, "per day", &activity.days, 0..10))
        }
    }
}

/// A chart of periods, whose times are named by the part `named` of `2026-03-14 09:26`; nothing if a value is unknown.
fn of_periods(shown: &Shown, length: &str, periods: &[Period], named: Range<usize>) -> Markup {
    let Some(values) = periods.iter().map(shown.value).collect::<Option<Vec<_>>>() else {
        return Markup::default();
    };
    let name = |of: &Period| {
        let time = Timestamp::from_unix_nanos(of.from).seconds().replace('T', " ");
        time.get(named.clone()).unwrap_or_default().to_owned()
    };
    let says = |of: &Period| format!("{} UTC: {}", name(of), (shown.says)(of));
    let bar = |(of, value): (&Period, &u64)| Bar {
        value: as_f64((*value).try_into().unwrap_or(i64::MAX)),
        label: says(of),
    };
    let drawn: Vec<_> = periods.iter().zip(&values).map(bar).collect();
    let top = count(values.iter().copied().max().unwrap_or_default());
    let end = |of: Option<&Period>| of.map(name).unwrap_or_default();
    let summary = format!("up to {top} since {} UTC", end(periods.first()));
    let axes = Axes { top, ends: [end(periods.first()), end(periods.last())] };
    html! {
        section.card {
            (bars(&format!("{} {length}", shown.title), &summary, &drawn, &axes))
            details {
                summary { "Values" }
                ul.values { @for of in periods.iter().rev() { li { (says(of)) } } }
            }
        }
    }
}

/// The mean time between blocks in milliseconds.
fn average(blocks: &[Block]) -> Option<f64> {
    let times: Vec<f64> = blocks.iter().map(|of| as_f64(of.block_time)).filter(|time| *time > 0.0).collect();
    // A page has few blocks.
    #[expect(clippy::cast_precision_loss)]
    let number = times.len() as f64;
    (!times.is_empty()).then(|| times.iter().sum::<f64>() / number)
}

fn recent(blocks: &[Block]) -> u64 {
    blocks.iter().map(|of| of.tx_count).sum()
}

/// Real times and counts of a block are below 2^53.
#[expect(clippy::cast_precision_loss)]
fn as_f64(number: i64) -> f64 {
    number as f64
}

/// Milliseconds as seconds.
fn seconds(millis: f64) -> String {
    if millis < 10_000.0 { format!("{:.2} s", millis / 1000.0) } else { format!("{:.0} s", millis / 1000.0) }
}
