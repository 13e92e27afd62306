//! Values of transactions, which the chain keeps in units of its fee token, and Ethereum in wei.

use std::sync::Arc;

use chain::U256;
use chain::evm::Receipt;
use chain::evm::transaction::{EthChain, EthTransaction};
use replay::Recording;
use schema::evm_tx::EvmTxs;
use schema::payload::Codec;
use schema::records::{self, Records, Step};
use schema::tx::Txs;
use serde_json::Value;
use store::Store;
use testkit::{indexed, recording};

/// All records of a kind.
fn all<T: Records>(store: &dyn Store, last: u64) -> Vec<Vec<u8>> {
    let snapshot = store.snapshot().unwrap();
    let (codec, seqs) = (Codec::load(&*snapshot).unwrap(), (1..=last).collect::<Vec<_>>());
    let mut found = Vec::new();
    records::walk::<T>(&*snapshot, &codec, &seqs, &mut |step| {
        if let Step::Record(record) = step {
            found.push(record.to_vec());
        }
        std::ops::ControlFlow::Continue(())
    })
    .unwrap();
    found
}

/// The record with the value in units of a token with so many decimals; `None` if it is none, or not whole.
fn in_units(record: &[u8], decimals: u32) -> Option<Vec<u8>> {
    let mut json: Value = serde_json::from_slice(record).unwrap();
    let value = &mut json["tx"]["body"]["messages"][0]["value"];
    let wei = U256::from_str_radix(value.as_str()?, 10).ok().filter(|wei| !wei.is_zero())?;
    let (units, rest) = wei.div_rem(U256::from(10).pow(U256::from(18 - decimals)));
    *value = units.to_string().into();
    rest.is_zero().then(|| json.to_string().into_bytes())
}

/// The decimals differ between chains, and a chain may change them; whatever was found last is only tried first.
#[tokio::test(flavor = "multi_thread")]
async fn a_value_has_the_decimals_that_the_hash_of_its_transaction_proves() {
    let recording = Arc::new(Recording::open(&recording("evm-fees")).unwrap());
    let store = indexed::index_for_json_rpc(Arc::clone(&recording), false).await.unwrap();
    let lane: schema::meta::BlockLane = schema::meta::read(&*store.snapshot().unwrap()).unwrap().unwrap();
    let receipts = all::<EvmTxs>(&*store, lane.evm_txs);
    let chain = EthChain::new(&recording.summary().chain_id, "init");
    let of = |record: &[u8], hash: &[u8; 32], decimals: &mut u8| {
        EthTransaction::of_record(&chain, record, hash, decimals).map(|tx| tx.summary().value)
    };
    let (mut compared, mut next) = (0, 0);
    for record in all::<Txs>(&*store, lane.txs) {
        let Some(receipt) = receipts.get(next) else { break };
        let receipt: Receipt<'_> = serde_json::from_slice(receipt).unwrap();
        let hash = receipt.hash().unwrap();
        let Some(wei) = of(&record, &hash, &mut 18) else { continue };
        next += 1;
        for known in [6, 8, 12] {
            let Some(other) = in_units(&record, known) else { continue };
            let mut decimals = 18;
            assert_eq!(of(&other, &hash, &mut decimals), Some(wei), "in {known} decimals");
            assert_eq!(u32::from(decimals), known);
            assert_eq!(of(&record, &hash, &mut decimals), Some(wei), "and back in 18");
            assert_eq!(decimals, 18);
            compared += 1;
        }
    }
    assert!(compared > 10, "{compared}");
}
