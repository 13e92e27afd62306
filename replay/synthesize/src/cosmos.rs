//! Usable transactions of a recorded MiniMove or MiniWasm: bank sends, failed messages, mints and transfers of NFTs,
//! each of one message by one signer.

use chain::Vm;
use replay::Recording;
use serde::Deserialize;

use crate::accounts::Account;
use crate::auth::Auth;
use crate::recorded::{Found, raw_txs, results};
use crate::template::{Recorded, Template};
use crate::text::token_text;
use crate::values::{Dialect, Values, object};
use crate::wire::{bytes, fields, replaced, replaced_bytes};
use crate::workload::{Candidate, Kind};

/// The first number of an NFT, and the number in a template.
const FIRST_TOKEN: u64 = 1;
const TEMPLATE_TOKEN: u64 = 900_000_000_001;
/// Shares of the kinds: calls (that fail), payments, mints, handovers.
const SHARES: [u64; 4] = [20, 50, 20, 10];
/// A longer log holds a stack trace.
const LONGEST_LOG: usize = 1_000;

/// The reply about an NFT's metadata, with the number of the template.
#[derive(Debug, Clone)]
pub(crate) struct Metadata {
    /// The URI without the number at its end.
    pub(crate) uri: String,
    pub(crate) description: String,
}

/// The message of a transaction with the parts that its kind needs.
struct Message<'a> {
    type_url: &'a str,
    /// The message's own bytes.
    value: &'a [u8],
}

impl<'a> Message<'a> {
    /// The only message of a raw transaction.
    fn parse(raw: &'a [u8]) -> Option<Self> {
        let body = fields(bytes(&fields(raw)?, 1))?;
        let messages = body.iter().filter(|(field, _)| *field == 1).count();
        let any = fields(bytes(&body, 1)).filter(|_| messages == 1)?;
        Some(Self { type_url: std::str::from_utf8(bytes(&any, 1)).ok()?, value: bytes(&any, 2) })
    }

    fn text(&self, field: u32) -> Option<&'a str> {
        std::str::from_utf8(bytes(&fields(self.value)?, field)).ok()
    }
}

/// The kind of a transaction with its accounts, and replacements that give its NFT the number of the template: in the
/// raw transaction and in the result.
struct Reading {
    kind: Kind,
    recipient: Option<Account>,
    token: Option<u64>,
    in_raw: Vec<(Vec<u8>, Vec<u8>)>,
    in_result: Vec<(String, String)>,
    metadata: Option<Metadata>,
}

impl Reading {
    fn new(kind: Kind, recipient: Option<Account>) -> Self {
        let token = matches!(kind, Kind::Mint { .. } | Kind::Handover { .. }).then_some(TEMPLATE_TOKEN);
        Self { kind, recipient, token, in_raw: Vec::new(), in_result: Vec::new(), metadata: None }
    }
}

/// All candidates, the metadata of the NFTs that they mint, and the first number of an NFT.
pub(crate) fn candidates(
    recording: &Recording,
    vm: Vm,
    prefix: &str,
) -> (Vec<Candidate>, Option<Metadata>, u64) {
    let (mut candidates, mut metadata) = (Vec::new(), None);
    for height in recording.heights() {
        for (raw, result) in raw_txs(height).into_iter().zip(results(height)) {
            let found = Found { raw, result: result.get() };
            if let Some((candidate, about)) = candidate(&found, vm, prefix) {
                candidates.push(candidate);
                metadata = metadata.or(about);
            }
        }
    }
    let counts =
        [0, 1, 2, 3].map(|kind| candidates.iter().filter(|c| kind_index(&c.kind) == kind).count() as u64);
    for candidate in &mut candidates {
        let kind = kind_index(&candidate.kind);
        candidate.weight = SHARES[kind] * 1_000 / counts[kind].max(1);
    }
    (candidates, metadata, FIRST_TOKEN)
}

fn kind_index(kind: &Kind) -> usize {
    match kind {
        Kind::Call | Kind::Creation(_) => 0,
        Kind::Payment { .. } => 1,
        Kind::Mint { .. } => 2,
        Kind::Handover { .. } => 3,
    }
}

fn candidate(found: &Found<'_>, vm: Vm, prefix: &str) -> Option<(Candidate, Option<Metadata>)> {
    let auth = Auth::parse(&found.raw)?;
    let (sender, sequence) = (auth.account(prefix)?, auth.sequence);
    let message = Message::parse(&found.raw)?;
    let result = TxResult::parse(found.result)?;
    let reading = if result.code != 0 {
        (message.text(1) == Some(&sender.bech32) && result.log.len() <= LONGEST_LOG)
            .then(|| Reading::new(Kind::Call, None))?
    } else {
        match (message.type_url, vm) {
            ("/cosmos.bank.v1beta1.MsgSend", _) => payment(&message, prefix)?,
            ("/cosmwasm.wasm.v1.MsgExecuteContract", Vm::Wasm) => wasm(&message, prefix)?,
            ("/initia.move.v1.MsgExecute", Vm::Move) => move_call(&result, prefix)?,
            _ => return None,
        }
    };
    if reading.recipient.as_ref().is_some_and(|to| to.address == sender.address) {
        return None;
    }
    let Reading { kind, recipient, token, in_raw, in_result, metadata } = reading;
    let mut raw = found.raw.clone();
    for (from, to) in &in_raw {
        // Transaction, body, message with its type; the message's fields are bytes.
        raw = replaced(&raw, from, to, 3)?;
    }
    let mut text = found.result.as_bytes().to_vec();
    for (from, to) in &in_result {
        text = replaced_bytes(&text, from.as_bytes(), to.as_bytes());
    }
    let metadata_object = result.attribute("metadata_addr").and_then(long_address);
    let dialect = Dialect { vm, chain_id: 0, metadata: metadata_object };
    let values = Values { recipient, contract: None, sequence, token, signature: found.signature(), sender };
    let recorded = Recorded { raw, result: String::from_utf8(text).ok()?, evm: None };
    let template = Template::compile(&recorded, &values, &dialect)?;
    let sender = values.sender;
    Some((Candidate { template, kind, sender, weight: 0 }, metadata))
}

fn payment(message: &Message<'_>, prefix: &str) -> Option<Reading> {
    let coins = fields(message.value)?;
    let coin = fields(bytes(&coins, 3)).filter(|_| coins.len() == 3)?;
    let asset = String::from_utf8(bytes(&coin, 1).to_vec()).ok()?;
    let amount = std::str::from_utf8(bytes(&coin, 2)).ok()?.parse().ok()?;
    let recipient = account(message.text(2)?, prefix)?;
    Some(Reading::new(Kind::Payment { asset, amount }, Some(recipient)))
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Execute<'a> {
    Mint { token_id: &'a str, owner: &'a str, token_uri: &'a str },
    TransferNft { recipient: &'a str, token_id: &'a str },
}

fn wasm(message: &Message<'_>, prefix: &str) -> Option<Reading> {
    let collection = message.text(2)?.to_owned();
    let wide = token_text(TEMPLATE_TOKEN);
    let member = |token_id: &str| (format!(r#""token_id":"{token_id}""#), format!(r#""token_id":"{wide}""#));
    let value = |token_id: &str| {
        (format!(r#""token_id","value":"{token_id}""#), format!(r#""token_id","value":"{wide}""#))
    };
    let (token_id, to, kind) = match serde_json::from_str(message.text(3)?).ok()? {
        Execute::Mint { token_id, owner, token_uri } => {
            let uri = token_uri.strip_suffix(token_id)?.to_owned();
            let mut reading = Reading::new(Kind::Mint { collection }, Some(account(owner, prefix)?));
            let uris = (format!("{token_uri}\""), format!("{uri}{wide}\""));
            reading.in_raw.push((uris.0.clone().into_bytes(), uris.1.clone().into_bytes()));
            reading.in_result.push(uris);
            reading.metadata = Some(Metadata { uri, description: String::new() });
            (token_id, None, reading)
        }
        Execute::TransferNft { recipient, token_id } => {
            let to = account(recipient, prefix)?;
            (token_id, Some(to.clone()), Reading::new(Kind::Handover { since_mint: 0 }, Some(to)))
        }
    };
    let mut reading = kind;
    reading.recipient = reading.recipient.or(to);
    let (from, to) = member(token_id);
    reading.in_raw.push((from.into_bytes(), to.into_bytes()));
    reading.in_result.push(value(token_id));
    Some(reading)
}

fn move_call(result: &TxResult, prefix: &str) -> Option<Reading> {
    let wide = token_text(TEMPLATE_TOKEN);
    let given_to = result.attribute("to").and_then(hex_account(prefix));
    let object_of = |name: &str| result.attribute(name).and_then(long_address);
    // Addresses in arguments are bytes, in events hex without leading zeros.
    let objects = |old: [u8; 32], reading: &mut Reading| {
        let new = object(TEMPLATE_TOKEN);
        let short = |object: [u8; 32]| format!("0x{}", hex::encode(object).trim_start_matches('0'));
        reading.in_raw.push((old.to_vec(), new.to_vec()));
        reading.in_result.push((short(old), short(new)));
    };
    match result.function()? {
        "mint" => {
            let (token_id, uri) = (result.attribute("token_id")?, result.attribute("uri")?);
            let base = uri.strip_suffix(token_id.trim_start_matches('#'))?.to_owned();
            let collection = result.attribute("collection")?.to_owned();
            let mut reading = Reading::new(Kind::Mint { collection }, Some(given_to?));
            objects(object_of("nft")?, &mut reading);
            let full = format!("{base}{wide}");
            for (old, new) in [(token_id, &wide), (uri, &full)] {
                reading.in_raw.push((bcs(old), bcs(new)));
                // As a value, and within a JSON text in a value.
                for end in ["\"", "\\\""] {
                    reading.in_result.push((format!("\"{old}{end}"), format!("\"{new}{end}")));
                }
            }
            let description = result.attribute("description").unwrap_or_default().to_owned();
            reading.metadata = Some(Metadata { uri: base, description });
            Some(reading)
        }
        "transfer" | "transfer_call" => {
            let mut reading = Reading::new(Kind::Handover { since_mint: 0 }, Some(given_to?));
            objects(object_of("object")?, &mut reading);
            Some(reading)
        }
        _ => None,
    }
}

/// A text as BCS encodes it, shorter than 128 bytes.
pub(crate) fn bcs(text: &str) -> Vec<u8> {
    let len = u8::try_from(text.len()).unwrap_or_default();
    [&[len], text.as_bytes()].concat()
}

fn account(bech32: &str, prefix: &str) -> Option<Account> {
    let address = chain::Account::from_bech32(bech32, prefix)?;
    Some(Account::new(address.as_bytes().try_into().ok()?, None, prefix))
}

fn hex_account(prefix: &str) -> impl Fn(&str) -> Option<Account> {
    move |text| {
        let bytes = hex::decode(format!("{:0>40}", text.strip_prefix("0x")?)).ok()?;
        Some(Account::new(bytes.try_into().ok()?, None, prefix))
    }
}

/// 32 bytes of hex that may lack leading zeros.
pub(crate) fn long_address(text: &str) -> Option<[u8; 32]> {
    hex::decode(format!("{:0>64}", text.strip_prefix("0x")?)).ok()?.try_into().ok()
}

#[derive(Deserialize)]
struct TxResult {
    code: u32,
    log: String,
    events: Vec<Event>,
}

#[derive(Deserialize)]
struct Event {
    attributes: Vec<Attribute>,
}

#[derive(Deserialize)]
struct Attribute {
    key: String,
    value: String,
}

impl TxResult {
    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The first attribute with this key.
    fn attribute(&self, key: &str) -> Option<&str> {
        let mut attributes = self.events.iter().flat_map(|event| &event.attributes);
        attributes.find(|attribute| attribute.key == key).map(|attribute| attribute.value.as_str())
    }

    fn function(&self) -> Option<&str> {
        self.attribute("function_name")
    }
}
