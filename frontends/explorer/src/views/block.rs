//! All blocks, and one block with its transactions.

use maud::html;
use query::v1::{Block, EvmTx, GetBlockResponse};
use web::call::Call;
use web::endpoint::Param;
use web::http_error::HttpError;

use super::bridge::coverage;
use super::tx_list::{self, TxList};
use super::{lookup, rows};
use crate::explorer::Explorer;
use crate::format::{cell, count, quantity, whole_time};
use crate::layout::Page;
use crate::layout::{facts, section};
use crate::listing::{KEY, Listing};

use crate::target::{self, Target, encoded};
use crate::view::{Response, View};

pub(crate) struct BlocksPage;

impl View for BlocksPage {
    const PATH: &'static str = "/blocks";
    const SUMMARY: &'static str = "All blocks.";
    const PARAMS: &'static [Param] = &[KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let blocks = Listing::<Block>::read(explorer, call, Target::new("/indexer/block/v1/blocks"))?;
        let body = html! {
            section.card #list data-live data-stream="/indexer/stream/v1/blocks" { (rows::blocks(explorer, &blocks.rows)) (blocks.pager(&Target::new(Self::PATH))) }
        };
        Ok(Page { title: "Blocks".to_owned(), about: String::new(), body, requests: vec![blocks.request] }
            .into())
    }
}

pub(crate) struct BlockPage;

impl View for BlockPage {
    const PATH: &'static str = "/block/{height}";
    const SUMMARY: &'static str = "One block.";
    const PARAMS: &'static [Param] = &{
        let [msgs, block_data, key] = tx_list::PARAMS;
        [
            Param::path(
                "height",
                "A height, 1 or more; in hex after 0x; or the hash of one of the newest blocks.",
            ),
            msgs,
            block_data,
            key,
        ]
    };

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let height = call.text("height");
        if let Some(page) = by_another_name(explorer, height)? {
            return Ok(Response::Redirect(page));
        }
        let request = format!("/indexer/block/v1/blocks/{}", encoded(height));
        let block = explorer.read::<GetBlockResponse>(&request)?.block.unwrap_or_default();
        let proposer = block.proposer.clone().unwrap_or_default();
        let list = Target::new(format!("/indexer/tx/v1/txs/by_height/{}", block.height));
        let txs = TxList::read(explorer, call, list, Target::new(target::block(block.height)))?;
        let height = block.height;
        let (covered_by, coverage_requests) = coverage(explorer, height)?;
        let mut requests = vec![request];
        let last = Listing::<Block>::first(
            explorer,
            Target::new("/indexer/block/v1/blocks").with("pagination.limit", "1"),
        )?;
        let mut evm = None;
        if explorer.is_evm() {
            let list = Target::new(format!("/indexer/tx/v1/evm-txs/by_height/{}", block.height));
            evm = Some(Listing::<EvmTx>::first(explorer, list.with("pagination.limit", "100"))?);
        }
        let body = html! {
            nav.steps aria-label="Neighbouring blocks" {
                // The one before the first indexed block has no page.
                @if height > 1 && block.block_time != 0 { a rel="prev" href=(target::block(height - 1)) { "← " (height - 1) } }
                @if height < last.total() { a rel="next" href=(target::block(height + 1)) { (height + 1) " →" } }
            }
            section.card {
                (facts(vec![
                    ("Hash", html! { span.mono { (block.hash) } }),
                    ("Time", whole_time(&block.timestamp)),
                    ("Since the block before", html! { (count(block.block_time)) " ms" }),
                    ("Proposer", html! { (cell(&proposer.moniker)) " " span.mono.dim { (proposer.operator_address) } }),
                    ("Gas", html! { (count(&block.gas_used)) " used of " (count(&block.gas_wanted)) " wanted" }),
                    ("Fees", rows::coins(explorer, &block.total_fee)),
                    ("Transactions", html! { (count(block.tx_count)) }),
                    ("Covered by", covered_by),
                ]))
            }
            (section("Transactions", &txs.shown(explorer)))
            @if let Some(evm) = &evm {
                (section("EVM transactions", &html! {
                    (rows::evm_txs(explorer, &evm.rows)?)
                    @if evm.total() > evm.rows.len() as u64 { p.dim { "The latest " (evm.rows.len()) " of " (count(evm.total())) "." } }
                }))
            }
        };
        requests.push(txs.txs.request);
        requests.extend(evm.map(|evm| evm.request));
        requests.extend(coverage_requests);
        Ok(Page { title: format!("Block {}", block.height), about: String::new(), body, requests }.into())
    }
}

/// The page of a block that is named by its hash, or by its height in hex; `None` for any other name.
fn by_another_name(explorer: &Explorer, name: &str) -> Result<Option<String>, HttpError> {
    let digits = lookup::digits(name);
    if lookup::is_hash(name) {
        let unknown = || {
            HttpError::not_found(format!(
                "{name} is not the hash of one of the {0} newest blocks, nor the EVM's hash of a block of the {0} newest EVM \
                 transactions. Older blocks are found by height.",
                lookup::BLOCKS
            ))
        };
        return lookup::block(explorer, digits)?.ok_or_else(unknown).map(Some);
    }
    Ok((digits.len() < name.len()).then(|| quantity(&format!("0x{digits}"))).flatten().map(target::block))
}
