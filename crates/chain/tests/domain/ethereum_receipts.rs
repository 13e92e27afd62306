//! Receipts of a chain with cosmos/evm: all recorded ones follow from the blocks and their results.

use alloy::primitives::keccak256;
use alloy::rlp::Header;
use chain::comet::proof::{Claims, check_header};
use chain::comet::proof::{
    EthereumBlock, Executed, base_fee, check_results, derive_ethereum_receipts, unknown_types,
};
use chain::comet::{TxResult, parse_block, parse_results};
use chain::evm::trace::parse_traces_of;
use chain::evm::{Receipt, parse_receipts, write_evm_tx};
use chain::tx::{DecodedTx, tx_hash};
use chain::{JsonText, U256};
use serde_json::Value;

use crate::recorded::{Line, heights};

const CHAIN: &str = "cosmos-evm";

/// A decoded block.
struct Block {
    about: EthereumBlock,
    txs: Vec<([u8; 32], Option<DecodedTx>)>,
}

impl Block {
    fn of(line: &Line) -> Self {
        let block = parse_block(line.block.get().as_bytes()).unwrap();
        let results = parse_results(line.block_results.get().as_bytes()).unwrap();
        let about = EthereumBlock { height: line.height, hash: block.hash, base_fee: base_fee(&results) };
        let raw = block.raw_txs().unwrap();
        Self { about, txs: raw.iter().map(|raw| (tx_hash(raw), DecodedTx::decode(raw).ok())).collect() }
    }

    fn receipts(&self, results: &[TxResult<'_>]) -> Result<Vec<Value>, String> {
        let executed = self.txs.iter().zip(results);
        let executed = executed.map(|((hash, tx), result)| Executed { hash: *hash, tx: tx.as_ref(), result });
        let derived = derive_ethereum_receipts(&self.about, executed).map_err(|error| error.to_string())?;
        Ok(derived.iter().map(stored).collect())
    }
}

fn stored(receipt: &Receipt<'_>) -> Value {
    let mut out = Vec::new();
    write_evm_tx(&mut out, receipt);
    serde_json::from_slice(&out).unwrap()
}

/// The node's receipts as they are stored: `to` of a creation is empty.
fn recorded(line: &Line) -> Vec<Value> {
    let mut receipts: Vec<Value> = serde_json::from_slice(line.receipts()).unwrap();
    for receipt in &mut receipts {
        if receipt["to"].is_null() {
            receipt["to"] = "".into();
        }
    }
    receipts
}

#[test]
fn every_recorded_receipt_follows_from_a_block_and_from_results_that_the_next_header_proves() {
    let (mut receipts, mut logs, mut failed, mut created) = (0, 0, 0, 0);
    let mut claims: Option<Claims> = None;
    for line in heights(CHAIN) {
        let block = parse_block(line.block.get().as_bytes()).unwrap();
        check_header(&block).unwrap();
        if let Some(claims) = claims {
            check_results(&claims, &block).unwrap();
        }
        let results = parse_results(line.block_results.get().as_bytes()).unwrap();
        claims = Some(Claims::from_results(&results).unwrap());
        let (derived, expected) = (Block::of(&line).receipts(&results.txs_results).unwrap(), recorded(&line));
        assert_eq!(derived, expected, "height {}", line.height);
        receipts += derived.len();
        logs += derived.iter().map(|receipt| receipt["logs"].as_array().unwrap().len()).sum::<usize>();
        failed += derived.iter().filter(|receipt| receipt["status"] == "0x0").count();
        created += derived.iter().filter(|receipt| !receipt["contractAddress"].is_null()).count();
    }
    assert_eq!((receipts, logs, failed, created), (493, 1_052, 17, 13));
}

/// The heights with as many transactions, and more.
fn with_txs(least: usize) -> impl Iterator<Item = Line> {
    heights(CHAIN).filter(move |line| recorded(line).len() >= least)
}

#[test]
fn several_ethereum_transactions_in_one_cosmos_transaction_have_a_receipt_each() {
    let line = with_txs(3).next().unwrap();
    let results = parse_results(line.block_results.get().as_bytes()).unwrap();
    let mut block = Block::of(&line);
    // The first transaction gets the messages of all, and their results.
    let messages = block.txs.iter().flat_map(|(_, tx)| tx.as_ref().unwrap().messages.clone()).collect();
    block.txs.truncate(1);
    block.txs[0].1.as_mut().unwrap().messages = messages;
    let data: Vec<u8> = results.txs_results.iter().flat_map(|result| result.data_bytes().unwrap()).collect();
    let data: JsonText<'_> = base64(&data).into();
    let whole = TxResult { data: Some(data), gas_used: 1, ..TxResult::default() };
    assert_eq!(block.receipts(std::slice::from_ref(&whole)).unwrap(), recorded(&line));
    // A transaction without a result is an error, not a receipt.
    let missing = TxResult { data: results.txs_results[0].data.clone(), ..whole };
    let error = block.receipts(&[missing]).unwrap_err();
    assert!(error.contains("1 responses to"), "{error}");
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

#[test]
fn a_transaction_that_did_not_fit_into_its_block_has_a_failed_receipt_over_its_whole_limit_and_others_none() {
    let line = with_txs(2).next().unwrap();
    let results = parse_results(line.block_results.get().as_bytes()).unwrap();
    let (block, whole) = (Block::of(&line), recorded(&line));
    let of_first = |log: &'static str| {
        let mut results = results.txs_results.clone();
        results[0] = TxResult { code: 11, codespace: "sdk".into(), log: log.into(), ..TxResult::default() };
        block.receipts(&results).unwrap()
    };
    let failed = of_first("out of gas in location: block gas meter; gasWanted: 40000000");
    assert_eq!(failed.len(), whole.len());
    assert_eq!((&failed[0]["status"], &failed[0]["logs"]), (&"0x0".into(), &Value::Array(Vec::new())));
    assert_eq!(failed[0]["gasUsed"], failed[0]["cumulativeGasUsed"]);
    assert_eq!(failed[1]["logs"].as_array().unwrap().len(), whole[1]["logs"].as_array().unwrap().len());
    let refused = of_first("invalid nonce");
    assert_eq!(refused.len(), whole.len() - 1);
    assert_eq!(refused[0]["transactionIndex"], "0x0");
}

#[test]
fn a_fee_market_lowers_the_price_to_the_base_fee_and_the_tip() {
    let is_dynamic = |line: &Line| recorded(line).iter().any(|receipt| receipt["type"] == "0x2");
    let line = heights(CHAIN).find(is_dynamic).unwrap();
    let results = parse_results(line.block_results.get().as_bytes()).unwrap();
    let at = recorded(&line).iter().position(|receipt| receipt["type"] == "0x2").unwrap();
    let mut block = Block::of(&line);
    let mut price = |base_fee: Option<u64>| {
        block.about.base_fee = base_fee.map(U256::from);
        let price = block.receipts(&results.txs_results).unwrap()[at]["effectiveGasPrice"].clone();
        u64::from_str_radix(price.as_str().unwrap().trim_start_matches("0x"), 16).unwrap()
    };
    let (tip, cap) = (price(Some(0)), price(None));
    assert_eq!(price(Some(5)), cap.min(tip + 5));
    assert_eq!(price(Some(u64::MAX)), cap);
}

#[test]
fn a_trace_that_names_no_transaction_is_of_the_one_in_its_place() {
    let mut traces = 0;
    for line in with_txs(1) {
        let receipts = parse_receipts(line.receipts()).unwrap();
        let hashes: Vec<_> = receipts.iter().map(|receipt| receipt.hash().unwrap()).collect();
        let found = parse_traces_of(line.traces(), &hashes).unwrap();
        assert_eq!(found.len(), receipts.len());
        for (trace, receipt) in found.iter().zip(&receipts) {
            assert_eq!(Ok(trace.hash), receipt.hash().map_err(|error| error.to_string()));
            assert_eq!(trace.frames[0].from, receipt.from);
            traces += 1;
        }
        assert!(parse_traces_of(line.traces(), &hashes[1..]).is_err(), "one has no place");
    }
    assert_eq!(traces, 493);
}

/// A length-delimited field of a message.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(bytes.len()).unwrap()], bytes].concat()
}

#[test]
fn a_transaction_of_an_unknown_type_has_a_receipt_without_what_only_its_bytes_tell() {
    let line = with_txs(2).next().unwrap();
    let results = parse_results(line.block_results.get().as_bytes()).unwrap();
    let (mut block, mut expected) = (Block::of(&line), recorded(&line));
    let raw = [&[0x7f][..], b"of a later fork"].concat();
    let (hash, sender) =
        (keccak256(&raw), alloy::primitives::hex::decode(expected[0]["from"].as_str().unwrap()).unwrap());
    let message = &mut block.txs[0].1.as_mut().unwrap().messages[0];
    message.value = [field(5, &sender), field(6, &raw)].concat();
    // The events of the chain name its recipient.
    let mut results = results.txs_results;
    for attribute in results[0].events.iter_mut().flat_map(|event| &mut event.attributes) {
        if attribute.key == "ethereumTxHash" {
            attribute.value = hash.to_string().into();
        }
    }
    let derived = block.receipts(&results).unwrap();
    let receipt = &mut expected[0];
    receipt["type"] = "0x7f".into();
    receipt["transactionHash"] = hash.to_string().into();
    receipt["effectiveGasPrice"] = "0x0".into();
    for log in receipt["logs"].as_array_mut().unwrap() {
        log["transactionHash"] = hash.to_string().into();
    }
    assert_eq!(derived, expected);
    assert_eq!(unknown_types(block.txs.iter().filter_map(|(_, tx)| tx.as_ref())), 1);
}

/// The items of a list in RLP; of a nested list, its whole content.
fn items(mut list: &[u8]) -> Vec<&[u8]> {
    let mut content = Header::decode_bytes(&mut list, true).unwrap();
    let mut items = Vec::new();
    while !content.is_empty() {
        let is_list = content[0] >= 0xc0;
        items.push(Header::decode_bytes(&mut content, is_list).unwrap());
    }
    items
}

/// A message of ethermint with the fields of a transaction in place of its bytes.
fn with_fields(raw: &[u8]) -> Vec<u8> {
    let kind = if raw[0] < 0xc0 { raw[0] } else { 0 };
    let items = items(if kind > 0 { &raw[1..] } else { raw });
    let name = ["LegacyTx", "AccessListTx", "DynamicFeeTx"][usize::from(kind)];
    // The numbers of whole fields, of which the first is the nonce, of the recipient, and of the accesses.
    let (whole, to, accesses) = [([1, 3], 4, 0), ([2, 4], 5, 8), ([2, 5], 6, 9)][usize::from(kind)];
    let mut message = Vec::new();
    for (number, item) in (1..).zip(items) {
        let text = || U256::from_be_slice(item).to_string();
        match number {
            number if whole.contains(&number) => {
                let mut varint = vec![number << 3];
                let mut rest: u64 = text().parse().unwrap();
                while rest >= 0x80 {
                    varint.push(u8::try_from(rest % 0x80).unwrap() | 0x80);
                    rest /= 0x80;
                }
                varint.push(u8::try_from(rest).unwrap());
                message.extend(varint);
            }
            number if number == to && !item.is_empty() => {
                message.extend(field(number, alloy::primitives::hex::encode_prefixed(item).as_bytes()));
            }
            number if number == accesses => {
                let mut tuples = item;
                while !tuples.is_empty() {
                    let mut tuple = Header::decode_bytes(&mut tuples, true).unwrap();
                    let hex = |bytes: &[u8]| alloy::primitives::hex::encode_prefixed(bytes).into_bytes();
                    let mut access = field(1, &hex(Header::decode_bytes(&mut tuple, false).unwrap()));
                    let mut keys = Header::decode_bytes(&mut tuple, true).unwrap();
                    while !keys.is_empty() {
                        access.extend(field(2, &hex(Header::decode_bytes(&mut keys, false).unwrap())));
                    }
                    assert!(access.len() < 0x80, "no recorded transaction has more than one key");
                    message.extend(field(number, &access));
                }
            }
            number if number > to + 1 => {
                let length = u8::try_from(item.len() % 0x80).unwrap();
                let long = item.len() / 0x80;
                message.push(number << 3 | 2);
                message.push(if long > 0 { length | 0x80 } else { length });
                message.extend((long > 0).then(|| u8::try_from(long).unwrap()));
                message.extend(item);
            }
            number if number == to => {}
            number => message.extend(field(number, text().as_bytes())),
        }
    }
    let url = format!("/ethermint.evm.v1.{name}");
    let length =
        |len: usize| vec![u8::try_from(len % 0x80).unwrap() | 0x80, u8::try_from(len / 0x80).unwrap()];
    let any = [field(1, url.as_bytes()), vec![0x12], length(message.len()), message].concat();
    let hash = keccak256(raw).to_string();
    [vec![0x0a], length(any.len()), any, field(3, hash.as_bytes())].concat()
}

#[test]
fn receipts_follow_from_transactions_in_the_form_of_ethermint_too() {
    let mut kinds = [0; 3];
    for line in with_txs(1) {
        let results = parse_results(line.block_results.get().as_bytes()).unwrap();
        let (mut block, expected) = (Block::of(&line), recorded(&line));
        for (tx, receipt) in block.txs.iter_mut().zip(&expected) {
            let message = &mut tx.1.as_mut().unwrap().messages[0];
            // The sender is field 5, of 20 bytes, and the transaction field 6.
            let raw = &message.value[23..];
            let length = raw.iter().take_while(|byte| **byte >= 0x80).count() + 1;
            let raw = &raw[length..];
            assert_eq!(keccak256(raw).to_string(), receipt["transactionHash"]);
            kinds[usize::from(if raw[0] < 0xc0 { raw[0] } else { 0 })] += 1;
            (message.type_url, message.value) =
                ("/ethermint.evm.v1.MsgEthereumTx".to_owned(), with_fields(raw));
        }
        assert_eq!(block.receipts(&results.txs_results).unwrap(), expected, "height {}", line.height);
        // A hash of other bytes proves nothing of the fields.
        let message = &mut block.txs[0].1.as_mut().unwrap().messages[0];
        let end = message.value.len() - 1;
        message.value[end] = if message.value[end] == b'0' { b'1' } else { b'0' };
        let derived = block.receipts(&results.txs_results).unwrap();
        assert_eq!(
            (&derived[0]["effectiveGasPrice"], &derived[0]["status"]),
            (&"0x0".into(), &expected[0]["status"])
        );
    }
    assert!(kinds.iter().all(|kind| *kind > 0), "{kinds:?}");
}
