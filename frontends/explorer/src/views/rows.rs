//! Tables that several pages have.

use chain::Timestamp;
use maud::{Markup, html};
use web::http_error::HttpError;

use crate::explorer::Explorer;
use crate::format::{
    TOO_LONG, account, block, block_data, cell, coin, count, evm_tx, link, message_type, none, number,
    outcome, quantity, time, tx,
};
use crate::layout::table;
use query::v1::{Block, Coin, EvmTx, InternalTx, Nft, Tx};

use crate::record;
use crate::target;

/// Message types that a row shows.
const TYPES: usize = 2;

/// Blocks.
pub(crate) fn blocks(explorer: &Explorer, blocks: &[Block]) -> Markup {
    let row = |of: &Block| {
        vec![
            block(of.height),
            time(&of.timestamp),
            html! { span.num { (count(of.tx_count)) } },
            html! { span.num { (count(&of.gas_used)) } },
            coins(explorer, &of.total_fee),
            of.proposer.as_ref().map_or_else(none, |proposer| cell(&proposer.moniker)),
        ]
    };
    let rows: Vec<_> = blocks.iter().map(row).collect();
    let columns = ["Height", "Time", ">Transactions", "~>Gas used", "~Fees", "~Proposer"];
    table("Blocks", &columns, &rows, "There are no blocks yet.")
}

/// Cosmos transactions.
pub(crate) fn txs(explorer: &Explorer, txs: &[Tx]) -> Markup {
    let row = |of: &Tx| {
        let (signed, is_block_data) = (record::signed(of), record::is_block_data(of));
        vec![
            tx(&of.txhash),
            if is_block_data {
                html! { span.none { "Block data (no transaction)" } }
            } else {
                types(&record::types(&signed.body))
            },
            if is_block_data { block_data() } else { outcome(of.code == 0) },
            block(of.height),
            time(&of.timestamp),
            coins(explorer, &signed.auth_info.fee.amount),
        ]
    };
    let rows: Vec<_> = txs.iter().map(row).collect();
    let columns = ["Hash", "Messages", "Result", "Height", "Time", "~Fee"];
    table("Transactions", &columns, &rows, "There are no transactions.")
}

fn types(types: &[String]) -> Markup {
    html! {
        @for name in types.iter().take(TYPES) { (message_type(name)) " " }
        @if types.len() > TYPES { span.dim { "+" (types.len() - TYPES) } }
        @if types.is_empty() { (none()) }
    }
}

/// Amounts.
pub(crate) fn coins(explorer: &Explorer, coins: &[Coin]) -> Markup {
    /// Denoms that a page shows of one list.
    const SHOWN: usize = 8;
    html! {
        @for (place, of) in coins.iter().take(SHOWN).enumerate() {
            @if place > 0 { ", " }
            (coin(&of.amount, &of.denom, explorer.unit(&of.denom).as_ref()))
        }
        @if coins.len() > SHOWN { span.dim { " +" (coins.len() - SHOWN) } }
        @if coins.is_empty() { (none()) }
    }
}

/// EVM transactions.
pub(crate) fn evm_txs(explorer: &Explorer, txs: &[EvmTx]) -> Result<Markup, HttpError> {
    let height = |of: &EvmTx| quantity(&of.block_number).and_then(|height| u64::try_from(height).ok());
    let heights: Vec<u64> = txs.iter().map(|of| height(of).unwrap_or_default()).collect();
    let times = explorer.block_times(&heights)?;
    let row = |(of, seconds): (&EvmTx, &Option<u64>)| {
        let to = match (Some(of.to.as_str()).filter(|to| !to.is_empty()), of.contract_address.as_deref()) {
            (Some(to), _) => account(to),
            (None, Some(created)) => html! { span.dim { "creates " } (account(created)) },
            (None, None) => none(),
        };
        vec![
            evm_tx(&of.transaction_hash),
            account(&of.from),
            to,
            outcome(of.status == "0x1"),
            height(of).map_or_else(none, block),
            seconds.map_or_else(none, |seconds| time(&seconds_text(seconds))),
            number(&of.gas_used),
        ]
    };
    let rows: Vec<_> = txs.iter().zip(&times).map(row).collect();
    let columns = ["Hash", "~From", "To", "Result", "Height", "Time", "~>Gas used"];
    Ok(table("EVM transactions", &columns, &rows, "There are no EVM transactions."))
}

/// A time as RFC 3339.
fn seconds_text(seconds: u64) -> String {
    let nanos = i64::try_from(seconds).ok().and_then(|seconds| seconds.checked_mul(1_000_000_000));
    Timestamp::from_unix_nanos(nanos.unwrap_or_default()).seconds()
}

/// Call frames of several transactions.
pub(crate) fn frames(frames: &[InternalTx]) -> Markup {
    let row = |of: &InternalTx| {
        vec![
            evm_tx(&of.hash),
            html! { span.tag { (of.r#type) } },
            account(&of.from),
            account(&of.to),
            number(&of.value),
            block(of.height),
        ]
    };
    let rows: Vec<_> = frames.iter().map(row).collect();
    let columns = ["Transaction", "Call", "~From", "To", ">Value", "~Height"];
    table("Internal transactions", &columns, &rows, "There are no internal transactions.")
}

/// Tokens; `with_collection` if they may be of several.
pub(crate) fn tokens(tokens: &[Nft], with_collection: bool) -> Markup {
    let row = |of: &Nft| {
        let nft = of.nft.clone().unwrap_or_default();
        let id = &nft.token_id;
        let shown = if id.is_empty() { "(empty id)".to_owned() } else { chain::truncated(id, 40) };
        let mut cells = vec![
            html! { a href=(target::token(&of.collection_addr, id).into_string()) { bdi { (shown) } } },
            link(&target::account(&of.owner), &of.owner),
            cell(if nft.uri_truncated { TOO_LONG } else { &nft.uri }),
            html! { (block(of.height)) " " span.dim { (time(&of.timestamp)) } },
        ];
        if with_collection {
            let collection = target::collection(&of.collection_addr);
            cells.insert(1, html! { a href=(collection) { (cell(&of.collection_name)) } });
        }
        cells
    };
    let rows: Vec<_> = tokens.iter().map(row).collect();
    let mut columns = vec!["Token", "Owner", "~URI", "~Last change"];
    if with_collection {
        columns.insert(1, "Collection");
    }
    table("Tokens", &columns, &rows, "There are no tokens.")
}
