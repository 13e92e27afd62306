//! Answers about state that the generated transactions change: sequences, balances, NFTs.

use alloy::primitives::U256;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use bytes::Bytes;
use chain::Vm;
use replay::recording::{Outcome, RestReply};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cosmos::{bcs, long_address};
use crate::synthesized::Synthesized;
use crate::text::token_text;
use crate::values::object;

const ACCOUNT: &str = "/cosmos/auth/v1beta1/accounts/";
const BALANCES: &str = "/cosmos/bank/v1beta1/balances/";
const MOVE: &str = "/initia/move/v1/accounts/";
const NFT: &str = "/resources/by_struct_tag?struct_tag=0x1::nft::Nft";
const OBJECT: &str = "/resources/by_struct_tag?struct_tag=0x1::object::ObjectCore";
const WASM: &str = "/cosmwasm/wasm/v1/contract/";
/// The functions `balanceOf(address)`, `ownerOf(uint256)`, `tokenURI(uint256)`.
const BALANCE_OF: &str = "70a08231";
const OWNER_OF: &str = "6352211e";
const TOKEN_URI: &str = "c87b56dd";
/// The base of the URIs of generated ERC-721s.
const URI: &str = "https://nft.test/";

/// A cw721 query.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Query {
    NftInfo { token_id: String },
    OwnerOf { token_id: String },
}

impl Synthesized {
    pub(crate) fn rest_state(&self, path: &str, height: u64) -> Option<RestReply> {
        let decoded = percent_decoded(path);
        let path = decoded.as_str();
        let executed = self.executed(height);
        let answer = if let Some(address) = path.strip_prefix(ACCOUNT) {
            self.account(address, executed)?
        } else if let Some(rest) = path.strip_prefix(BALANCES) {
            self.balances_of(rest.split('?').next()?, executed)?
        } else if let Some(rest) = path.strip_prefix(MOVE) {
            self.move_object(rest, executed)?
        } else {
            self.cw721(path.strip_prefix(WASM)?, executed)?
        };
        Some(RestReply { status: 200, body: answer.to_string().into() })
    }

    /// An account: of the law, or a recorded sender.
    fn account(&self, address: &str, executed: u64) -> Option<Value> {
        let bytes = self.address(address)?;
        let sequence = match self.workload.accounts.member(bytes) {
            Some(member) => self.workload.sequence(member, executed),
            None => self.workload.fixed_sequence(bytes, executed)?,
        };
        Some(json!({ "account": {
            "@type": "/cosmos.auth.v1beta1.BaseAccount",
            "address": address,
            "pub_key": null,
            "account_number": "0",
            "sequence": sequence.to_string(),
        } }))
    }

    /// The bank's balances, which on an EVM are those of ERC-20s.
    fn balances_of(&self, address: &str, executed: u64) -> Option<Value> {
        let bytes = self.address(address).filter(|_| self.vm != Vm::Evm)?;
        let balances = self.workload.assets().filter_map(|asset| {
            let amount = self.balance(asset, bytes, executed).filter(|amount| *amount > 0)?;
            Some(json!({ "denom": asset, "amount": amount.to_string() }))
        });
        let balances: Vec<Value> = balances.collect();
        let known = self.workload.accounts.member(bytes).is_some() || !balances.is_empty();
        known.then(|| {
            let total = balances.len().to_string();
            json!({ "balances": balances, "pagination": { "next_key": null, "total": total } })
        })
    }

    /// The balance of an asset; `None` if it does not follow from the recording.
    pub(crate) fn balance(&self, asset: &str, address: [u8; 20], executed: u64) -> Option<u128> {
        if let Some(member) = self.workload.accounts.member(address) {
            return self.workload.received(asset, member, executed);
        }
        let paid = self.workload.paid(asset, address, executed)?;
        self.balances.get(&(asset.to_owned(), address))?.checked_sub(paid)
    }

    /// The resources of an NFT's object.
    fn move_object(&self, rest: &str, executed: u64) -> Option<Value> {
        let (text, tag) = match rest.strip_suffix(NFT) {
            Some(text) => (text, "0x1::nft::Nft"),
            None => (rest.strip_suffix(OBJECT)?, "0x1::object::ObjectCore"),
        };
        let address = long_address(text)?;
        let mut last = [0; 8];
        last.copy_from_slice(&address[24..]);
        let token = u64::from_be_bytes(last);
        let (collection, owner) =
            self.workload.owner(token, executed).filter(|_| object(token) == address)?;
        let metadata = self.metadata.as_ref()?;
        let (token_id, uri) = (token_text(token), format!("{}{}", metadata.uri, token_text(token)));
        let data = if tag.ends_with("Nft") {
            json!({
                "collection": { "inner": collection },
                "description": metadata.description,
                "token_id": token_id,
                "uri": uri,
            })
        } else {
            json!({ "owner": format!("0x{}", owner.hex.trim_start_matches('0')) })
        };
        let mut raw = long_address(collection)?.to_vec();
        for text in [&metadata.description, &token_id, &uri] {
            raw.extend(bcs(text));
        }
        Some(json!({ "resource": {
            "address": text,
            "struct_tag": tag,
            "move_resource": json!({ "type": tag, "data": data }).to_string(),
            "raw_bytes": STANDARD.encode(raw),
        } }))
    }

    fn cw721(&self, rest: &str, executed: u64) -> Option<Value> {
        let (contract, query) = rest.split_once("/smart/")?;
        let query = URL_SAFE.decode(query).ok()?;
        let query: Query = serde_json::from_slice(&query).ok()?;
        let (Query::NftInfo { token_id } | Query::OwnerOf { token_id }) = &query;
        let token = token_id.parse().ok().filter(|token| token_text(*token) == *token_id)?;
        let (_, owner) =
            self.workload.owner(token, executed).filter(|(collection, _)| *collection == contract)?;
        let uri = format!("{}{token_id}", self.metadata.as_ref()?.uri);
        Some(match query {
            Query::NftInfo { .. } => json!({ "data": { "token_uri": uri, "extension": null } }),
            Query::OwnerOf { .. } => json!({ "data": { "owner": owner.bech32, "approvals": [] } }),
        })
    }

    pub(crate) fn contract_state(&self, to: &str, data: &str, height: u64) -> Option<Outcome> {
        let executed = self.executed(height);
        let to = to.to_ascii_lowercase();
        let (function, argument) = data.strip_prefix("0x")?.split_at_checked(8)?;
        let argument = U256::from_str_radix(argument, 16).ok()?;
        let result = match function {
            BALANCE_OF => {
                let holder = <[u8; 20]>::try_from(&argument.to_be_bytes::<32>()[12..]).ok()?;
                let contract = <[u8; 20]>::try_from(hex::decode(to.get(2..)?).ok()?).ok()?;
                let created = self.workload.created_balance(contract, holder, executed);
                let balance = created.or_else(|| self.balance(&to, holder, executed))?;
                U256::from(balance).to_be_bytes::<32>().to_vec()
            }
            OWNER_OF => crate::eth::word(&self.erc721(&to, argument, executed)?.address).to_vec(),
            TOKEN_URI => {
                self.erc721(&to, argument, executed)?;
                let uri = format!("{URI}{argument}");
                let word = |number: usize| U256::from(number).to_be_bytes::<32>();
                let mut text = uri.clone().into_bytes();
                text.resize(uri.len().next_multiple_of(32), 0);
                [&word(32)[..], &word(uri.len()), &text].concat()
            }
            _ => return None,
        };
        Some(Outcome::Result(Bytes::from(format!("\"0x{}\"", hex::encode(result)))))
    }

    /// The owner of a generated ERC-721.
    fn erc721(&self, contract: &str, token: U256, executed: u64) -> Option<crate::accounts::Account> {
        let token = token.try_into().ok()?;
        let (_, owner) =
            self.workload.owner(token, executed).filter(|(collection, _)| *collection == contract)?;
        Some(owner)
    }

    fn address(&self, bech32: &str) -> Option<[u8; 20]> {
        let account = chain::Account::from_bech32(bech32, &self.prefix)?;
        account.as_bytes().try_into().ok()
    }
}

/// A path without percent-encoding; a malformed one is left as it is.
fn percent_decoded(path: &str) -> String {
    percent_encoding::percent_decode_str(path).decode_utf8().map_or_else(|_| path.to_owned(), Into::into)
}
