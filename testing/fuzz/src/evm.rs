//! Headers of EVM blocks, which a node computes, and EVM transactions, which are rebuilt from stored records: whatever is
//! accepted is proved by its hash.

use std::sync::{Arc, LazyLock};

use chain::evm::dialect::Dialect;
use chain::evm::header::{self, Bloom, Contents, union_of_blooms};
use chain::evm::transaction::{EthChain, EthTransaction};
use chain::evm::{Receipt, parse_receipts};
use replay::Recording;
use replay::recording::Height;
use serde_json::Value;
use web::app::App;

use crate::edit;
use crate::input::Input;
use crate::recorded::chains;

/// Members of a header and of a record, and values.
pub const WORDS: &[&str] = &[
    "\"hash\":",
    "\"parentHash\":",
    "\"logsBloom\":",
    "\"transactions\":[",
    "\"baseFeePerGas\":",
    "\"gas_fee_cap\":",
    "\"sequence\":",
    "\"signatures\":[",
    "/minievm.evm.v1.MsgCall",
    "/minievm.evm.v1.MsgCreate",
    "\"0xffffffffffffffff\"",
    "\"0x\"",
    "null",
    "18446744073709551616",
];

/// A recorded EVM block, with what its header is checked against.
struct Block {
    height: u64,
    timestamp: u64,
    bloom: Bloom,
    hashes: Vec<[u8; 32]>,
    reply: Value,
}

impl Block {
    fn of(height: &Height) -> Option<Self> {
        let receipts = parse_receipts(height.eth_receipts.as_ref()?).unwrap();
        let reply: Value = serde_json::from_slice(height.eth_block.as_ref()?).unwrap();
        let timestamp = u64::from_str_radix(&reply["timestamp"].as_str()?[2..], 16).unwrap();
        let hashes = receipts.iter().map(|receipt| receipt.hash().unwrap()).collect();
        let bloom = union_of_blooms(&receipts);
        Some(Self { height: height.height, timestamp, bloom, hashes, reply })
    }
}

static BLOCKS: LazyLock<Vec<Block>> =
    LazyLock::new(|| chains()[0].recording.heights().iter().filter_map(Block::of).step_by(5).collect());

/// Input: a byte, then a reply; or the number of a recorded reply, and edits of it.
pub fn header(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let is_text = input.byte().is_multiple_of(2);
    let block = input.one_of(&BLOCKS);
    let reply = if is_text {
        input.rest().to_vec()
    } else {
        let mut reply = block.reply.clone();
        edit::apply(&mut reply, &mut input);
        reply.to_string().into_bytes()
    };
    let contents = Contents { number: block.height, timestamp: block.timestamp, bloom: &block.bloom };
    let Ok(header) = header::parse(&reply, &contents, &block.hashes) else { return false };
    assert_eq!(header.computed_hash(&contents), header.hash);
    assert_eq!(
        format!("0x{}", hex::encode(header.hash)),
        block.reply["hash"],
        "only the recorded one has it"
    );
    let mut printed = Vec::new();
    header.write_json(&mut printed, &contents, block.reply["transactions"].to_string().as_bytes());
    assert_eq!(header::parse(&printed, &contents, &block.hashes).unwrap(), header);
    true
}

/// Recorded headers, as text and as edits.
pub fn header_seeds() -> Vec<Vec<u8>> {
    let text = |(number, block): (u8, &Block)| [&[0, number], block.reply.to_string().as_bytes()].concat();
    let mut seeds: Vec<Vec<u8>> = (0..4).zip(&*BLOCKS).map(text).collect();
    seeds.extend((0..12).map(|number| vec![1, number]));
    seeds.extend((0..12).map(|number| vec![1, number, 0, 9, 2, 3, b'a', b'b', b'c']));
    seeds
}

/// A record of a Cosmos transaction, its receipt, and the hash of the EVM transaction.
struct Tx {
    record: Value,
    receipt: String,
    hash: [u8; 32],
}

const CHAIN_ID: &str = "e2e-evm-1";

static TXS: LazyLock<Vec<Tx>> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let recording = Arc::new(Recording::open(&testkit::recording("evm-scenario")).unwrap());
    assert_eq!(recording.summary().chain_id, CHAIN_ID);
    let store = runtime.block_on(testkit::indexed::index_for_json_rpc(recording, false)).unwrap();
    let app = App::new(testkit::indexed::indexer(store).unwrap(), query::ENDPOINTS).unwrap();
    let list = |path: &str| {
        let page = app.get(&format!("/indexer/tx/v1/{path}?pagination.limit=1000"));
        let page: Value = serde_json::from_slice(page.body()).unwrap();
        page["txs"].as_array().unwrap().clone()
    };
    let receipts: Vec<String> = list("evm-txs").iter().map(Value::to_string).collect();
    let mut txs = Vec::new();
    for record in list("txs") {
        let bytes = record.to_string().into_bytes();
        for receipt in &receipts {
            let hash = serde_json::from_str::<Receipt<'_>>(receipt).unwrap().hash().unwrap();
            if rebuilt(&bytes, &hash).is_some() {
                txs.push(Tx { record, receipt: receipt.clone(), hash });
                break;
            }
        }
    }
    txs.into_iter().step_by(7).collect()
});

fn rebuilt(record: &[u8], hash: &[u8; 32]) -> Option<EthTransaction> {
    EthTransaction::of_record(&EthChain::new(CHAIN_ID, "init"), record, hash, &mut 18)
}

/// Input: a byte, then a record; or the number of a recorded one, and edits of it.
pub fn tx(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let is_text = input.byte().is_multiple_of(2);
    let tx = input.one_of(&TXS);
    let record = if is_text {
        input.rest().to_vec()
    } else {
        let mut record = tx.record.clone();
        edit::apply(&mut record, &mut input);
        record.to_string().into_bytes()
    };
    let Some(found) = rebuilt(&record, &tx.hash) else { return false };
    let original = rebuilt(tx.record.to_string().as_bytes(), &tx.hash).unwrap();
    let receipt: Receipt<'_> = serde_json::from_str(&tx.receipt).unwrap();
    for dialect in [Dialect::Fixed, Dialect::Node] {
        let json = |tx: &EthTransaction| {
            let mut out = Vec::new();
            tx.write_json(&mut out, &receipt, dialect);
            serde_json::from_slice::<Value>(&out).unwrap()
        };
        assert_eq!(found.raw(dialect), original.raw(dialect), "a hash has one transaction");
        assert_eq!(json(&found), json(&original));
    }
    true
}

/// Recorded transactions, as text and as edits.
pub fn tx_seeds() -> Vec<Vec<u8>> {
    let text = |(number, tx): (u8, &Tx)| [&[0, number], tx.record.to_string().as_bytes()].concat();
    let mut seeds: Vec<Vec<u8>> = (0..8).zip(&*TXS).map(text).collect();
    seeds.extend((0..20).map(|number| vec![1, number]));
    seeds.extend((0..20).map(|number| vec![1, number, 0, 9, 2, 3, b'a', b'b', b'c']));
    seeds
}
