//! The header of an EVM block of minievm: parsed from `eth_getBlockByNumber`, proved by its hash, and printed.
//!
//! On a minievm the header is one of Shanghai with constants for what the chain has not (`minievm:indexer/abci.go`). It is no consensus
//! data: a node computes it, and one that has rebuilt its EVM index may have others for the same blocks. On a chain with cosmos/evm
//! its hash is that of `CometBFT`'s header, which does not cover the members here; of these the block and its receipts tell some, and
//! the rest is the node's.

use alloy::primitives::{B256, U256, keccak256};
use alloy::rlp::{Encodable as _, Header as Rlp};
use serde::{Deserialize, Serialize};

use super::log::bytes;
use super::{Error, Receipt, hex_quantity, quantity};
use crate::hash::Hash;
use crate::json;
use crate::serde_lenient::{JsonText, list};

/// The root of an empty trie: of state, of withdrawals, and of a block without transactions.
pub const EMPTY_ROOT: Hash = [
    0x56, 0xe8, 0x1f, 0x17, 0x1b, 0xcc, 0x55, 0xa6, 0xff, 0x83, 0x45, 0xe6, 0x92, 0xc0, 0xf8, 0x6e, 0x5b,
    0x48, 0xe0, 0x1b, 0x99, 0x6c, 0xad, 0xc0, 0x01, 0x62, 0x2f, 0xb5, 0xe3, 0x63, 0xb4, 0x21,
];

/// The hash of no uncles.
const NO_UNCLES: Hash = [
    0x1d, 0xcc, 0x4d, 0xe8, 0xde, 0xc7, 0x5d, 0x7a, 0xab, 0x85, 0xb5, 0x67, 0xb6, 0xcc, 0xd4, 0x1a, 0xd3,
    0x12, 0x45, 0x1b, 0x94, 0x8a, 0x74, 0x13, 0xf0, 0xa1, 0x42, 0xfd, 0x40, 0xd4, 0x93, 0x47,
];

const NO_HASH: &str = "0x0000000000000000000000000000000000000000000000000000000000000000";

/// The hash of no requests (EIP-7685).
const NO_REQUESTS: &str = "0xe3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

const NO_NONCE: &str = "0x0000000000000000";

/// The bits of all logs of a block or transaction.
pub type Bloom = [u8; 256];

/// The members of a header that are not constants and do not follow from the block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its hash.
    pub hash: Hash,
    /// The hash of the header before.
    pub parent: Hash,
    /// The root of its transactions.
    pub tx_root: Hash,
    /// The root of its receipts.
    pub receipts_root: Hash,
    /// The gas limit of a block of the chain.
    pub gas_limit: u64,
    /// The gas used by all Cosmos transactions.
    pub gas_used: u64,
    /// The base fee per gas.
    pub base_fee: U256,
    /// What only a header has whose hash is that of `CometBFT`'s.
    pub of_comet: Option<OfComet>,
}

/// The members of a header of a chain with cosmos/evm or ethermint that are constants on a minievm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfComet {
    /// The account of the proposer.
    pub miner: [u8; 20],
    /// The root of the state before the block.
    pub state_root: Hash,
    /// Bytes of the block, as the node counts them.
    pub size: u64,
    /// True if it has the members of Cancun and Prague.
    pub is_prague: bool,
}

/// What else the hash of a header covers, and what it is checked against.
#[derive(Clone, Copy, Debug)]
pub struct Contents<'a> {
    /// The height.
    pub number: u64,
    /// The time of the block in seconds.
    pub timestamp: u64,
    /// The union of the blooms of its receipts.
    pub bloom: &'a Bloom,
}

/// Why a header cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HeaderError {
    /// The reply is no block, or one of another height.
    #[error(transparent)]
    Reply(#[from] Error),
    /// The header contradicts the block, or its own hash.
    #[error("the EVM header of block {height}: {member} is {actual}, expected {expected}")]
    Contradiction {
        /// The height.
        height: u64,
        /// The member.
        member: &'static str,
        /// The received value.
        actual: String,
        /// The value that follows from the block.
        expected: String,
    },
}

/// The members that are read.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "'de: 'a"))]
struct Reply<'a> {
    number: JsonText<'a>,
    hash: JsonText<'a>,
    parent_hash: JsonText<'a>,
    transactions_root: JsonText<'a>,
    receipts_root: JsonText<'a>,
    gas_limit: JsonText<'a>,
    gas_used: JsonText<'a>,
    base_fee_per_gas: JsonText<'a>,
    timestamp: JsonText<'a>,
    logs_bloom: JsonText<'a>,
    #[serde(deserialize_with = "list")]
    transactions: Vec<JsonText<'a>>,
    #[serde(default)]
    miner: JsonText<'a>,
    #[serde(default)]
    state_root: JsonText<'a>,
    #[serde(default)]
    size: JsonText<'a>,
    #[serde(default)]
    requests_hash: JsonText<'a>,
}

/// Reads the `result` of `eth_getBlockByNumber(height, false)` of a block with these `contents` and with the transactions
/// `hashes`, in order, and checks that its hash is that of its content.
pub fn parse(reply: &[u8], contents: &Contents<'_>, hashes: &[Hash]) -> Result<Header, HeaderError> {
    parse_with(reply, contents, hashes, None)
}

/// The same of a header whose hash must be that of `CometBFT`'s, if there is one.
pub fn parse_with(
    reply: &[u8],
    contents: &Contents<'_>,
    hashes: &[Hash],
    of_comet: Option<&Hash>,
) -> Result<Header, HeaderError> {
    let read: Option<Reply<'_>> = serde_json::from_slice(reply).map_err(Error::BlockShape)?;
    let read = read.ok_or(Error::NotReady)?;
    let height = contents.number;
    let contradiction = |member, actual: &str, expected: String| {
        let actual = crate::excerpt(actual.as_bytes());
        HeaderError::Contradiction { height, member, actual, expected }
    };
    let number = |member, text: &JsonText<'_>| {
        quantity(text).ok_or_else(|| contradiction(member, text, "a quantity of 64 bits".to_owned()))
    };
    let hash = |member, text: &JsonText<'_>| {
        bytes::<32>(text).ok_or_else(|| contradiction(member, text, "a hash".to_owned()))
    };
    if number("number", &read.number)? != height {
        let (hash, block_number) = (read.hash.to_string(), read.number.to_string());
        return Err(Error::OtherBlock { hash, block_number, height }.into());
    }
    if number("timestamp", &read.timestamp)? != contents.timestamp {
        return Err(contradiction(
            "timestamp",
            &read.timestamp,
            hex_quantity(contents.timestamp).to_string(),
        ));
    }
    if bytes::<256>(&read.logs_bloom).as_ref() != Some(contents.bloom) {
        let expected = alloy::hex::encode_prefixed(contents.bloom);
        return Err(contradiction("logsBloom", &read.logs_bloom, crate::excerpt(expected.as_bytes())));
    }
    let named: Vec<Option<Hash>> = read.transactions.iter().map(|text| bytes(text)).collect();
    if !named.iter().copied().eq(hashes.iter().copied().map(Some)) {
        let actual = format!("{} hashes", named.len());
        return Err(contradiction(
            "transactions",
            &actual,
            format!("the hashes of {} receipts", hashes.len()),
        ));
    }
    let base_fee = read.base_fee_per_gas.strip_prefix("0x");
    let miner = || {
        let expected = || contradiction("miner", &read.miner, "an address".to_owned());
        bytes::<20>(&read.miner).ok_or_else(expected)
    };
    let members = || {
        Ok::<_, HeaderError>(OfComet {
            miner: miner()?,
            state_root: hash("stateRoot", &read.state_root)?,
            size: number("size", &read.size)?,
            is_prague: !read.requests_hash.is_empty(),
        })
    };
    let header = Header {
        hash: hash("hash", &read.hash)?,
        parent: hash("parentHash", &read.parent_hash)?,
        tx_root: hash("transactionsRoot", &read.transactions_root)?,
        receipts_root: hash("receiptsRoot", &read.receipts_root)?,
        gas_limit: number("gasLimit", &read.gas_limit)?,
        gas_used: number("gasUsed", &read.gas_used)?,
        base_fee: base_fee.and_then(|digits| U256::from_str_radix(digits, 16).ok()).ok_or_else(|| {
            contradiction("baseFeePerGas", &read.base_fee_per_gas, "a quantity of 256 bits".to_owned())
        })?,
        of_comet: of_comet.map(|_| members()).transpose()?,
    };
    let computed = of_comet.copied().unwrap_or_else(|| header.computed_hash(contents));
    if computed != header.hash {
        return Err(contradiction("hash", &read.hash, alloy::hex::encode_prefixed(computed)));
    }
    Ok(header)
}

/// The union of the blooms of receipts; one that is malformed has no bits.
pub fn union_of_blooms<'r, 'a: 'r>(receipts: impl IntoIterator<Item = &'r Receipt<'a>>) -> Bloom {
    let mut union = [0; 256];
    for receipt in receipts {
        if let Some(bloom) = bytes::<256>(&receipt.logs_bloom) {
            union.iter_mut().zip(bloom).for_each(|(union, bits)| *union |= bits);
        }
    }
    union
}

impl Header {
    fn miner(&self) -> String {
        alloy::hex::encode_prefixed(self.of_comet.map_or([0; 20], |members| members.miner))
    }

    fn state_root(&self) -> Hash {
        self.of_comet.map_or(EMPTY_ROOT, |members| members.state_root)
    }

    /// A member that only a header of Prague has.
    fn of_prague(&self, value: &'static str) -> Option<&'static str> {
        self.of_comet.filter(|members| members.is_prague).map(|_| value)
    }

    /// The hash of the header with these contents.
    pub fn computed_hash(&self, contents: &Contents<'_>) -> Hash {
        let mut items = Vec::with_capacity(700);
        for hash in [&self.parent, &NO_UNCLES] {
            hash.encode(&mut items);
        }
        [0_u8; 20].encode(&mut items);
        for root in [&EMPTY_ROOT, &self.tx_root, &self.receipts_root] {
            root.encode(&mut items);
        }
        contents.bloom.encode(&mut items);
        0_u8.encode(&mut items);
        for number in [contents.number, self.gas_limit, self.gas_used, contents.timestamp] {
            number.encode(&mut items);
        }
        (&[] as &[u8]).encode(&mut items);
        B256::ZERO.encode(&mut items);
        [0_u8; 8].encode(&mut items);
        self.base_fee.encode(&mut items);
        EMPTY_ROOT.encode(&mut items);
        let mut all = Vec::with_capacity(items.len() + 3);
        Rlp { list: true, payload_length: items.len() }.encode(&mut all);
        all.extend_from_slice(&items);
        keccak256(&all).0
    }

    /// Appends the JSON of the header as `eth_subscribe` has it (go-ethereum `core/types/gen_header_json.go`).
    pub fn write_new_head(&self, out: &mut Vec<u8>, contents: &Contents<'_>) {
        let prefixed = |hash: &Hash| alloy::hex::encode_prefixed(hash);
        let json = NewHead {
            parent_hash: prefixed(&self.parent),
            sha3_uncles: prefixed(&NO_UNCLES),
            miner: self.miner(),
            state_root: prefixed(&self.state_root()),
            transactions_root: prefixed(&self.tx_root),
            receipts_root: prefixed(&self.receipts_root),
            logs_bloom: alloy::hex::encode_prefixed(contents.bloom),
            difficulty: "0x0",
            number: hex_quantity(contents.number),
            gas_limit: hex_quantity(self.gas_limit),
            gas_used: hex_quantity(self.gas_used),
            timestamp: hex_quantity(contents.timestamp),
            extra_data: "0x",
            mix_hash: prefixed(&[0; 32]),
            nonce: NO_NONCE,
            base_fee_per_gas: format!("{:#x}", self.base_fee),
            withdrawals_root: prefixed(&EMPTY_ROOT),
            blob_gas_used: self.of_prague("0x0"),
            excess_blob_gas: self.of_prague("0x0"),
            parent_beacon_block_root: self.of_prague(NO_HASH),
            requests_hash: self.of_prague(NO_REQUESTS),
            hash: prefixed(&self.hash),
        };
        json::push(out, &json);
    }

    /// Appends the JSON of the block; `transactions` is the JSON of that member.
    pub fn write_json(&self, out: &mut Vec<u8>, contents: &Contents<'_>, transactions: &[u8]) {
        let prefixed = |hash: &Hash| alloy::hex::encode_prefixed(hash);
        let json = Json {
            base_fee_per_gas: format!("{:#x}", self.base_fee),
            blob_gas_used: self.of_prague("0x0"),
            difficulty: "0x0",
            excess_blob_gas: self.of_prague("0x0"),
            extra_data: "0x",
            gas_limit: hex_quantity(self.gas_limit),
            gas_used: hex_quantity(self.gas_used),
            hash: prefixed(&self.hash),
            logs_bloom: alloy::hex::encode_prefixed(contents.bloom),
            miner: self.miner(),
            mix_hash: prefixed(&[0; 32]),
            nonce: NO_NONCE,
            number: hex_quantity(contents.number),
            parent_beacon_block_root: self.of_prague(NO_HASH),
            parent_hash: prefixed(&self.parent),
            receipts_root: prefixed(&self.receipts_root),
            requests_hash: self.of_prague(NO_REQUESTS),
            sha3_uncles: prefixed(&NO_UNCLES),
            size: hex_quantity(self.of_comet.map_or(0, |members| members.size)),
            state_root: prefixed(&self.state_root()),
            timestamp: hex_quantity(contents.timestamp),
        };
        json::push(out, &json);
        // The rest of the members, spliced: transactions may be megabytes.
        out.pop();
        out.extend_from_slice(br#","transactions":"#);
        out.extend_from_slice(transactions);
        json::push_member(out, r#","transactionsRoot":"#, &prefixed(&self.tx_root));
        out.extend_from_slice(br#","uncles":[],"withdrawals":[]"#);
        json::push_member(out, r#","withdrawalsRoot":"#, &prefixed(&EMPTY_ROOT));
        out.push(b'}');
    }
}

/// All members; those of later forks are null.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct NewHead<'a> {
    parent_hash: String,
    #[serde(rename = "sha3Uncles")]
    sha3_uncles: String,
    miner: String,
    state_root: String,
    transactions_root: String,
    receipts_root: String,
    logs_bloom: String,
    difficulty: &'a str,
    number: JsonText<'a>,
    gas_limit: JsonText<'a>,
    gas_used: JsonText<'a>,
    timestamp: JsonText<'a>,
    extra_data: &'a str,
    mix_hash: String,
    nonce: &'a str,
    base_fee_per_gas: String,
    withdrawals_root: String,
    blob_gas_used: Option<&'a str>,
    excess_blob_gas: Option<&'a str>,
    parent_beacon_block_root: Option<&'a str>,
    requests_hash: Option<&'a str>,
    hash: String,
}

/// The members before the transactions, in alphabetical order, as the node writes them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Json<'a> {
    base_fee_per_gas: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    blob_gas_used: Option<&'a str>,
    difficulty: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    excess_blob_gas: Option<&'a str>,
    extra_data: &'a str,
    gas_limit: JsonText<'a>,
    gas_used: JsonText<'a>,
    hash: String,
    logs_bloom: String,
    miner: String,
    mix_hash: String,
    nonce: &'a str,
    number: JsonText<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_beacon_block_root: Option<&'a str>,
    parent_hash: String,
    receipts_root: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests_hash: Option<&'a str>,
    #[serde(rename = "sha3Uncles")]
    sha3_uncles: String,
    size: JsonText<'a>,
    state_root: String,
    timestamp: JsonText<'a>,
}
