//! The constant parts of blocks: the last recorded block, its results and its EVM block, as frames of all others.

use alloy::primitives::Bloom;
use replay::eth_header::{EMPTY_ROOT, eth_header_hash};
use replay::recording::Height;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::accounts::digest;

const NANOS: i64 = 1_000_000_000;

/// Hashes that the next header refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) block: [u8; 32],
    pub(crate) results: [u8; 32],
    /// The EVM's block; zeros on a chain without an EVM.
    pub(crate) eth_block: [u8; 32],
}

impl Link {
    /// Bytes of a link.
    pub(crate) const LEN: usize = 96;

    pub(crate) fn to_bytes(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..32].copy_from_slice(&self.block);
        bytes[32..64].copy_from_slice(&self.results);
        bytes[64..].copy_from_slice(&self.eth_block);
        bytes
    }

    pub(crate) fn from_bytes(bytes: [u8; Self::LEN]) -> Self {
        let mut link = Self { block: [0; 32], results: [0; 32], eth_block: [0; 32] };
        link.block.copy_from_slice(&bytes[..32]);
        link.results.copy_from_slice(&bytes[32..64]);
        link.eth_block.copy_from_slice(&bytes[64..]);
        link
    }
}

/// The last recorded height, taken apart.
#[derive(Debug)]
pub(crate) struct Frame {
    height: u64,
    time: i64,
    header: Value,
    commit: Value,
    evidence: Value,
    results: Value,
    /// Without transactions.
    eth_block: Option<Value>,
    parts: Value,
    app_hash: String,
    pub(crate) link: Link,
}

/// What the header of the EVM's block has of its transactions.
#[derive(Debug, Default)]
pub(crate) struct EthTotals {
    pub(crate) count: usize,
    pub(crate) gas_used: u64,
    pub(crate) bloom: Bloom,
}

/// A block without its transactions.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) text: String,
    pub(crate) commit: String,
    pub(crate) hash: [u8; 32],
}

impl Frame {
    /// The error is the reason why the height cannot be followed.
    pub(crate) fn after(last: &Height) -> Result<Self, String> {
        let block: Value = serde_json::from_slice(&last.block).map_err(|e| e.to_string())?;
        let results: Value = serde_json::from_slice(&last.block_results).map_err(|e| e.to_string())?;
        let answer = chain::comet::parse_block(&last.block).map_err(|e| e.to_string())?;
        let parsed = chain::comet::parse_results(&last.block_results).map_err(|e| e.to_string())?;
        let claims = chain::comet::proof::Claims::from_results(&parsed).map_err(|e| e.to_string())?;
        let eth_block = last.eth_block.as_deref().map(serde_json::from_slice::<Value>).transpose();
        let mut eth_block = eth_block.map_err(|e| e.to_string())?;
        let mut link = Link { block: answer.hash, results: claims.results_hash, eth_block: [0; 32] };
        if let Some(block) = &mut eth_block {
            let hash = block["hash"].as_str().unwrap_or_default().trim_start_matches("0x");
            hex::decode_to_slice(hash, &mut link.eth_block).map_err(|e| e.to_string())?;
            block["transactions"] = json!([]);
        }
        Ok(Self {
            height: last.height,
            time: answer.header.time.unix_nanos(),
            header: block["block"]["header"].clone(),
            commit: block["block"]["last_commit"].clone(),
            evidence: block["block"]["evidence"].clone(),
            results,
            eth_block,
            parts: block["block_id"]["parts"].clone(),
            app_hash: hex::encode_upper(claims.app_hash.unwrap_or_default()),
            link,
        })
    }

    /// The header of a height, with the commit of the block before.
    pub(crate) fn header(&self, height: u64, before: Link, data_hash: [u8; 32]) -> Result<Header, String> {
        let (mut header, mut commit) = (self.header.clone(), self.commit.clone());
        let id = json!({ "hash": hex::encode_upper(before.block), "parts": self.parts(height - 1) });
        commit["height"] = (height - 1).to_string().into();
        commit["block_id"] = id.clone();
        if let Some(signatures) = commit["signatures"].as_array_mut() {
            for signature in signatures.iter_mut().filter(|signature| signature["block_id_flag"] == 2) {
                signature["timestamp"] = self.time(height - 1).into();
            }
        }
        let read: chain::comet::header::Commit =
            serde_json::from_value(commit.clone()).map_err(|e| e.to_string())?;
        header["height"] = height.to_string().into();
        header["time"] = self.time(height).into();
        header["last_block_id"] = id;
        header["last_commit_hash"] = hex::encode_upper(chain::comet::header::commit_hash(&read)).into();
        header["data_hash"] = hex::encode_upper(data_hash).into();
        header["last_results_hash"] = hex::encode_upper(before.results).into();
        header["app_hash"] = self.app_hash(height - 1).into();
        header["next_validators_hash"] = header["validators_hash"].clone();
        let hash = replay::header::header_hash(&header)?;
        Ok(Header { text: header.to_string(), commit: commit.to_string(), hash })
    }

    /// `/block` of a header with transactions in base64, quoted and separated by commas.
    pub(crate) fn block(&self, height: u64, header: &Header, txs: &str) -> String {
        let (hash, parts) = (hex::encode_upper(header.hash), self.parts(height));
        let (text, commit, evidence) = (&header.text, &header.commit, &self.evidence);
        format!(
            r#"{{"block_id":{{"hash":"{hash}","parts":{parts}}},"block":{{"header":{text},"data":{{"txs":[{txs}]}},"evidence":{evidence},"last_commit":{commit}}}}}"#
        )
    }

    /// The start and the end of `/block_results` around the results; a node prints no results as null.
    pub(crate) fn results(&self, height: u64) -> (String, String) {
        let mut frame = self.results.clone();
        frame["height"] = height.to_string().into();
        frame["app_hash"] = {
            use base64::Engine as _;
            let bytes = hex::decode(self.app_hash(height)).unwrap_or_default();
            base64::engine::general_purpose::STANDARD.encode(bytes).into()
        };
        frame["finalize_block_events"] = Value::Null;
        if let Some(members) = frame.as_object_mut() {
            members.remove("txs_results");
        }
        let text = frame.to_string();
        (r#"{"txs_results":"#.to_owned(), format!(",{}", text.strip_prefix('{').unwrap_or(&text)))
    }

    /// The EVM's block after the one with the hash `parent`, with its hash, as `eth_getBlockByNumber` without transactions.
    /// `None` on a chain without an EVM.
    pub(crate) fn eth_block(
        &self,
        height: u64,
        parent: &[u8; 32],
        txs: &EthTotals,
    ) -> Result<Option<(Value, [u8; 32])>, String> {
        let Some(mut block) = self.eth_block.clone() else { return Ok(None) };
        block["number"] = format!("{height:#x}").into();
        block["parentHash"] = format!("0x{}", hex::encode(parent)).into();
        let seconds = self.nanos(height).div_euclid(NANOS);
        block["timestamp"] = format!("{seconds:#x}").into();
        block["gasUsed"] = format!("{:#x}", txs.gas_used).into();
        block["logsBloom"] = format!("0x{}", hex::encode(txs.bloom)).into();
        for (root, purpose) in [("transactionsRoot", "eth txs"), ("receiptsRoot", "eth receipts")] {
            let number = || format!("0x{}", number_hash(purpose, height));
            block[root] = if txs.count == 0 { EMPTY_ROOT.into() } else { number().into() };
        }
        let hash = eth_header_hash(&block)?;
        block["hash"] = format!("0x{}", hex::encode(hash)).into();
        Ok(Some((block, hash)))
    }

    /// The part set of a block.
    fn parts(&self, height: u64) -> Value {
        if height == self.height {
            return self.parts.clone();
        }
        json!({ "total": 1, "hash": number_hash("parts", height).to_ascii_uppercase() })
    }

    /// The application's hash after a height, upper-case hex.
    fn app_hash(&self, height: u64) -> String {
        if height == self.height {
            return self.app_hash.clone();
        }
        number_hash("app", height).to_ascii_uppercase()
    }

    /// Blocks are a second apart.
    fn nanos(&self, height: u64) -> i64 {
        let seconds = i64::try_from(height - self.height).unwrap_or_default();
        self.time.saturating_add(seconds.saturating_mul(NANOS))
    }

    fn time(&self, height: u64) -> String {
        chain::Timestamp::from_unix_nanos(self.nanos(height)).nanos()
    }
}

/// A substitute for a hash that only a node can compute.
fn number_hash(purpose: &str, height: u64) -> String {
    hex::encode(Sha256::digest(digest(purpose, 0, height)))
}
