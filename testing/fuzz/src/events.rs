//! A block, its results and its receipts: accepted answers give a complete block, deterministically; others are
//! requested again.

use std::sync::LazyLock;

use chain::comet::proof::{self, Claims, Commitments};
use chain::movement::{Reader, Source};
use chain::{AccountSet, Vm, comet, evm, evm::erc20, nft};
use ingest::derive::{self, Block, BlockResponses, EvmResponse, Failure, Rendered, WorkerState};
use replay::recording::Height;
use schema::movement::{MovementRow, Place, PlacedMovement};
use serde_json::Value;
use serde_json::value::RawValue;
use store::Value as _;

use crate::edit;
use crate::input::Input;
use crate::recorded::{Chain, chains};

/// Kinds of events, attributes and values.
pub const WORDS: &[&str] = &[
    "\"events\":[",
    "\"attributes\":[",
    "{\"type\":\"transfer\",\"attributes\":[]}",
    "\"key\":\"recipient\"",
    "\"value\":",
    "contract_address",
    "log",
    "{\\\"address\\\":",
    "\\\"topics\\\":[",
    "wasm",
    "_contract_address",
    "token_id",
    "move",
    "type_tag",
    "0x1::object::TransferEvent",
    "0x1::fungible_asset::WithdrawEvent",
    "coin_spent",
    "coin_received",
    "instantiate",
    "{\"@type\":\"/cosmwasm.wasm.v1.MsgInstantiateContract\",\"msg\":{\"initial_balances\":[",
    "\"@type\":\"/minievm.evm.v1.MsgCall\"",
    "null",
    "9223372036854775808",
    "\\ud800",
    "\\u0000",
];

/// Maximum length of the replies of a height in a seed, together.
const MAX_BYTES: usize = 24_000;

/// Input: a byte for the chain, a byte for the form, and then: block, results and receipts, one line each; or the
/// number of a recorded height, and edits of its replies.
pub fn run(data: &[u8]) -> bool {
    let mut input = Input::new(data);
    let which = usize::from(input.byte()) % chains().len();
    let chain = &chains()[which];
    let parts = if input.byte().is_multiple_of(2) { lines(input) } else { edited(&RECORDED[which], input) };
    let [block, results, receipts] = &parts;
    any_chain(results);
    movements(block, results);
    let height = comet::parse_block(block).map_or(0, |block| block.header.height);
    let receipts = Some(receipts.as_slice()).filter(|text| !text.is_empty());
    // Hashes would reject mutated answers, so they are checked by `proofs` only.
    let answers = BlockResponses { height, block, results, evm: receipts.map(EvmResponse::Unchecked) };
    proofs(block, results);
    if let Some(receipts) = receipts {
        of_receipts(receipts);
    }
    if let Some(block) = receipts.and_then(evm_block) {
        let answers = BlockResponses { evm: Some(EvmResponse::Block(&block)), ..answers };
        chain.workers.with(|worker| derived(chain, &answers, worker)).unwrap();
    }
    chain.workers.with(|worker| derived(chain, &answers, worker)).unwrap()
}

/// The EVM block that has these receipts.
fn evm_block(receipts: &[u8]) -> Option<Vec<u8>> {
    let receipts: Vec<Value> = serde_json::from_slice(receipts).ok()?;
    let hashes: Vec<&Value> = receipts.iter().map(|receipt| &receipt["transactionHash"]).collect();
    let first = receipts.first()?;
    let (number, hash) = (&first["blockNumber"], &first["blockHash"]);
    Some(
        serde_json::json!({ "number": number, "hash": hash, "transactions": hashes })
            .to_string()
            .into_bytes(),
    )
}

/// Checks against hashes accept or reject any block and results, deterministically.
fn proofs(block: &[u8], results: &[u8]) {
    let Ok(block) = comet::parse_block(block) else { return };
    assert_eq!(proof::check_header(&block), proof::check_header(&block));
    assert_eq!(proof::check_last_commit(&block).is_ok(), proof::check_last_commit(&block).is_ok());
    if let Ok(results) = comet::parse_results(results)
        && let Ok(claims) = Claims::from_results(&results)
    {
        assert_eq!(proof::check_results(&claims, &block), Commitments::from_block(&block).check(&claims));
    }
}

fn lines(input: Input<'_>) -> [Vec<u8>; 3] {
    let mut lines = input.rest().splitn(3, |byte| *byte == b'\n').map(<[u8]>::to_vec);
    [(); 3].map(|()| lines.next().unwrap_or_default())
}

fn edited(recorded: &[&Height], mut input: Input<'_>) -> [Vec<u8>; 3] {
    let height = *input.one_of(recorded);
    let json =
        |text: Option<&bytes::Bytes>| text.map_or(Value::Null, |text| serde_json::from_slice(text).unwrap());
    let all = [Some(&height.block), Some(&height.block_results), height.eth_receipts.as_ref()];
    let mut answers = Value::Array(all.map(json).to_vec());
    edit::apply(&mut answers, &mut input);
    let part = |index: usize| match answers.get(index) {
        None | Some(Value::Null) => Vec::new(),
        Some(answer) => answer.to_string().into_bytes(),
    };
    [part(0), part(1), part(2)]
}

/// Small heights with transactions, of each chain.
static RECORDED: LazyLock<Vec<Vec<&Height>>> = LazyLock::new(|| chains().iter().map(recorded).collect());

fn recorded(chain: &Chain) -> Vec<&Height> {
    let size = |height: &Height| {
        height.block.len()
            + height.block_results.len()
            + height.eth_receipts.as_ref().map_or(0, bytes::Bytes::len)
    };
    let heights = chain.recording.heights().iter();
    heights
        .filter(|height| size(height) <= MAX_BYTES && height.rest_txs.is_some())
        .step_by(3)
        .take(64)
        .collect()
}

/// Reads events as those of every VM.
fn any_chain(results: &[u8]) {
    let Ok(results) = comet::parse_results(results) else { return };
    for vm in [Vm::Evm, Vm::Move, Vm::Wasm] {
        for (tx, _) in nft::events(vm, "init", &results) {
            assert!(tx.is_none_or(|tx| tx < results.txs_results.len()));
        }
    }
    erc20::events(&results);
    let hash = proof::results_hash(&results.txs_results);
    let all_base64 = results.txs_results.iter().all(|result| result.data_bytes().is_ok());
    assert_eq!(hash.is_ok(), all_base64);
}

/// Reads movements as those of every VM, with `message` as the message of each transaction: each has a side, and is the same
/// in its stored form.
fn movements(message: &[u8], results: &[u8]) {
    let Ok(results) = comet::parse_results(results) else { return };
    let message: Option<&RawValue> = serde_json::from_slice(message).ok();
    let messages: Vec<&RawValue> = message.into_iter().collect();
    for vm in [Vm::Evm, Vm::Move, Vm::Wasm, Vm::None] {
        let reader = Reader::new(vm, "init");
        let txs = results.txs_results.iter().map(|result| (Source::Tx(&messages), &result.events));
        for (source, events) in txs.chain([(Source::Block, &results.finalize_block_events)]) {
            let found = reader.read(source, events);
            assert_eq!(found.movements, reader.read(source, events).movements);
            for (index, movement) in (0..).zip(found.movements) {
                let placed = PlacedMovement { height: 1, place: Place::Tx(2), index, movement };
                let row = MovementRow(vec![placed]);
                let mut stored = Vec::new();
                row.encode(&mut stored);
                assert_eq!(MovementRow::decode(&stored), Some(row));
            }
        }
    }
}

fn derived(chain: &Chain, answers: &BlockResponses<'_>, worker: &mut WorkerState) -> bool {
    let mut rendered = Rendered::new();
    let mut derive = |rendered: &Rendered| derive::block(answers, rendered, &chain.rules, worker);
    let mut outcome = derive(&rendered);
    if let Err(Failure::Unrendered(txs)) = &outcome {
        rendered.extend(txs.iter().map(|tx| (tx.index, None)));
        outcome = derive(&rendered);
        assert!(
            !matches!(outcome, Err(Failure::Unrendered(_))),
            "an unrendered transaction is opaque and requested only once"
        );
    }
    let Ok(block) = outcome else { return false };
    whole(chain, answers, &block);
    let again = derive(&rendered).expect("the same answers give a block");
    assert_eq!(format!("{block:?}"), format!("{again:?}"), "the same answers give the same block");
    !block.txs.is_empty()
}

/// Checks that stored records are JSON, one for each transaction, and that lists of accounts have no duplicates.
fn whole(chain: &Chain, answers: &BlockResponses<'_>, block: &Block) {
    assert_eq!(block.height, answers.height);
    assert_eq!(chain.records(&block.tx_records), block.txs.len());
    assert_eq!(chain.records(&block.evm_tx_records), block.evm_txs.len());
    for tx in &block.txs {
        distinct(&tx.involved);
        distinct(&tx.signers);
        assert!(tx.signers.iter().all(|signer| tx.involved.contains(signer)), "a signer is involved");
        assert!(
            tx.types.windows(2).all(|two| two[0] < two[1]),
            "types are sorted, each once: {:?}",
            tx.types
        );
    }
    for tx in &block.evm_txs {
        distinct(&tx.involved);
    }
    assert!(block.fees.windows(2).all(|two| two[0].0 < two[1].0), "fees are sorted: {:?}", block.fees);
    assert!(block.nfts.windows(2).all(|two| two[0].place < two[1].place), "events are in order");
}

fn distinct(accounts: &[chain::Account]) {
    let mut set = AccountSet::default();
    assert!(accounts.iter().all(|account| set.insert(*account)), "no duplicates");
}

fn of_receipts(answer: &[u8]) {
    let Ok(receipts) = evm::parse_receipts(answer) else { return };
    for receipt in &receipts {
        let mut out = Vec::new();
        evm::write_evm_tx(&mut out, receipt);
        let read = serde_json::from_slice::<serde::de::IgnoredAny>(&out);
        assert!(read.is_ok(), "{read:?} in {}", String::from_utf8_lossy(&out));
        let mut accounts = AccountSet::default();
        if receipt.accounts(&mut accounts).is_ok() {
            distinct(&Vec::from_iter(accounts));
        }
    }
}

/// Recorded heights, as text and as edits.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (number, heights) in (0_u8..).zip(RECORDED.iter()) {
        let mut heights = heights.clone();
        heights.sort_by_key(|height| height.block.len() + height.block_results.len());
        for height in heights.iter().take(4) {
            let receipts = height.eth_receipts.as_deref().unwrap_or_default();
            seeds.push(
                [&[number, 0], &height.block[..], b"\n", &height.block_results[..], b"\n", receipts].concat(),
            );
        }
        seeds.extend((0_u8..12).map(|height| vec![number, 1, 0, height, 0, 40, 2, 3, b'a', b'b', b'c']));
    }
    seeds
}
