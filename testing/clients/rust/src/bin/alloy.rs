//! alloy's provider over cairn's JSON-RPC of a recorded chain: blocks, transactions, receipts, logs, subscriptions.
//!
//! `alloy URL` of `cairn demo --recording ../recordings/evm-fees --evm-listen ADDR`; with `--live` of a node that
//! shows new blocks.

use std::collections::BTreeMap;
use std::error::Error;

use alloy::consensus::{Transaction as _, Typed2718 as _};
use alloy::eips::BlockNumberOrTag;
use alloy::eips::eip2718::Encodable2718 as _;
use alloy::network::TransactionResponse as _;
use alloy::primitives::{Address, keccak256};
use alloy::providers::{Provider, ProviderBuilder, WsConnect};
use alloy::rpc::types::{BlockTransactions, Filter};
use futures_util::StreamExt as _;

/// Heads that are awaited.
const HEADS: usize = 10;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let url = args.first().ok_or("usage: alloy URL [--live]")?;
    if args.iter().any(|arg| arg == "--live") { subscriptions(url).await } else { reads(url).await }
}

async fn reads(url: &str) -> Result<(), Box<dyn Error>> {
    let provider = ProviderBuilder::new().connect_http(url.parse()?);
    let (head, chain_id) = (provider.get_block_number().await?, provider.get_chain_id().await?);
    let (mut kinds, mut from_receipts) = (BTreeMap::<u8, usize>::new(), 0);
    for number in 1..=head {
        let block = provider.get_block_by_number(number.into()).full().await?.ok_or("no block")?;
        // Of a Shanghai header alloy computes the hash itself.
        assert_eq!(block.header.inner.hash_slow(), block.header.hash, "{number}");
        let BlockTransactions::Full(txs) = &block.transactions else { return Err("no transactions".into()) };
        let receipts = provider.get_block_receipts(number.into()).await?.ok_or("no receipts")?;
        assert_eq!(txs.len(), receipts.len());
        for (tx, receipt) in txs.iter().zip(&receipts) {
            assert_eq!((tx.tx_hash(), tx.block_hash), (receipt.transaction_hash, Some(block.header.hash)));
            // Other than of Cosmos transactions, which nobody has signed.
            if tx.from() != Address::ZERO {
                assert_eq!(tx.chain_id(), Some(chain_id), "{tx:?}");
                // Computed from the members of the transaction.
                let computed = keccak256(tx.inner.inner().encoded_2718());
                assert_eq!(computed, receipt.transaction_hash, "{tx:?}");
            }
            *kinds.entry(tx.ty()).or_default() += 1;
            from_receipts += receipt.logs().len();
            assert!(receipt.effective_gas_price == 0 || tx.inner.max_fee_per_gas() >= receipt.effective_gas_price);
        }
    }
    let logs = provider.get_logs(&Filter::new().from_block(1).to_block(BlockNumberOrTag::Latest)).await?;
    assert_eq!(logs.len(), from_receipts);
    assert!(logs.is_sorted_by_key(|log| (log.block_number, log.log_index)));
    println!("alloy: {kinds:?} transactions by type, {} logs", logs.len());
    Ok(())
}

async fn subscriptions(url: &str) -> Result<(), Box<dyn Error>> {
    let socket = ProviderBuilder::new().connect_ws(WsConnect::new(url.replace("http:", "ws:"))).await?;
    let mut heads = socket.subscribe_blocks().await?.into_stream().take(HEADS);
    let mut logs = socket.subscribe_logs(&Filter::new()).await?.into_stream();
    let mut last: Option<alloy::rpc::types::Header> = None;
    while let Some(head) = heads.next().await {
        assert_eq!(head.inner.hash_slow(), head.hash);
        if let Some(last) = last {
            assert_eq!((last.number + 1, last.hash), (head.number, head.parent_hash));
        }
        last = Some(head);
    }
    let log = logs.next().await.ok_or("no log")?;
    let number = log.block_number.ok_or("a log without a block")?;
    let all = socket.get_logs(&Filter::new().from_block(number).to_block(number)).await?;
    assert!(all.contains(&log), "{log:?}");
    println!("alloy: {HEADS} heads, a log of block {number}");
    Ok(())
}
