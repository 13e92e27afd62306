//! A recorded transaction as a template: its bytes, result, receipt and trace with slots.
//!
//! # Invariants
//!
//! - A template with the values of its recorded transaction renders the recorded texts byte for byte; a transaction
//!   for which this fails is no template. So no hash, filter or address in it is left unchanged.

use alloy::primitives::{Bloom, U256};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Vm;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha3::{Digest as _, Sha3_256};

use crate::accounts::{Account, KEY_TYPE, digest};
use crate::eth::{LegacyTx, accrue, word};
use crate::text::{Form, Needle, Part, Role, Slot, Text, token_text};
use crate::wire::{Value, bytes, fields, push_bytes, push_number};

/// A recorded transaction with its answers, raw.
#[derive(Debug, Clone)]
pub(crate) struct Recorded<'a> {
    pub(crate) raw: Vec<u8>,
    pub(crate) result: String,
    /// Receipt and trace, on an EVM.
    pub(crate) evm: Option<(&'a str, &'a str)>,
}

/// The values in the slots of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) sender: Account,
    pub(crate) recipient: Option<Account>,
    pub(crate) contract: Option<Account>,
    pub(crate) sequence: u64,
    /// The number of the NFT.
    pub(crate) token: Option<u64>,
    /// 64 bytes, or 65 with the parity.
    pub(crate) signature: Vec<u8>,
}

/// The properties of a chain that its texts depend on.
#[derive(Debug, Clone)]
pub(crate) struct Dialect {
    pub(crate) vm: Vm,
    /// The EVM's number of the chain.
    pub(crate) chain_id: u64,
    /// Move's object of the token that bank messages send.
    pub(crate) metadata: Option<[u8; 32]>,
}

/// The place of a transaction in its block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) height: u64,
    /// The hash of the EVM's block, hex.
    pub(crate) eth_block: &'a str,
    /// From 1.
    pub(crate) position: u64,
    /// Gas of the block up to this transaction and with it.
    pub(crate) gas_so_far: u64,
}

#[derive(Debug)]
pub(crate) struct Template {
    body: Text,
    /// Mode of the signature and fee, as in the recorded transaction.
    mode: Vec<u8>,
    fee: Vec<u8>,
    data: Text,
    result: Text,
    has_data: bool,
    pub(crate) code: u32,
    pub(crate) gas_wanted: i64,
    pub(crate) gas_used: i64,
    pub(crate) signature_len: usize,
    metadata: Option<[u8; 32]>,
    evm: Option<EvmTemplate>,
}

/// The parts that only a transaction on an EVM has.
#[derive(Debug)]
struct EvmTemplate {
    chain_id: u64,
    gas_limit: u64,
    to: Vec<u8>,
    value: U256,
    /// Hex.
    input: Text,
    receipt: Text,
    trace: Text,
    /// The filter of all constant addresses and topics.
    bloom: Bloom,
    topics: Vec<Slot>,
    /// Whether the created contract logs.
    contract_logs: bool,
    frames: u64,
}

/// The members of a result that its hash covers.
#[derive(Deserialize)]
struct ResultHead<'a> {
    code: u32,
    #[serde(borrow)]
    data: Option<&'a str>,
    gas_wanted: &'a str,
    gas_used: &'a str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReceiptHead<'a> {
    transaction_hash: &'a str,
    block_hash: &'a str,
    block_number: &'a str,
    transaction_index: &'a str,
    cumulative_gas_used: &'a str,
    logs_bloom: &'a str,
    #[serde(borrow)]
    logs: Vec<LogHead<'a>>,
}

#[derive(Deserialize)]
struct LogHead<'a> {
    address: &'a str,
    #[serde(borrow)]
    topics: Vec<&'a str>,
}

#[derive(Deserialize)]
struct Memo<'a> {
    #[serde(rename = "type")]
    kind: u8,
    #[serde(borrow)]
    gas_fee_cap: &'a RawValue,
    gas_limit: u64,
}

/// The signer of a raw transaction: key, sequence, mode; and the fee. `None` unless one key of the usual type signs.
pub(crate) struct Auth<'a> {
    pub(crate) key: [u8; 33],
    pub(crate) sequence: u64,
    mode: &'a [u8],
    fee: &'a [u8],
}

impl<'a> Auth<'a> {
    pub(crate) fn of(raw: &'a [u8]) -> Option<Self> {
        let raw = fields(raw)?;
        let [(1, _), (2, Value::Bytes(auth)), (3, _)] = raw[..] else { return None };
        let auth = fields(auth)?;
        let [(1, Value::Bytes(signer)), (2, Value::Bytes(fee))] = auth[..] else { return None };
        let signer = fields(signer)?;
        let (key, mode, sequence) = match signer[..] {
            [(1, Value::Bytes(key)), (2, Value::Bytes(mode))] => (key, mode, 0),
            [(1, Value::Bytes(key)), (2, Value::Bytes(mode)), (3, Value::Number(sequence))] => {
                (key, mode, sequence)
            }
            _ => return None,
        };
        let key = fields(key)?;
        if bytes(&key, 1) != KEY_TYPE.as_bytes() {
            return None;
        }
        let value = fields(bytes(&key, 2))?;
        Some(Self { key: bytes(&value, 1).try_into().ok()?, sequence, mode, fee })
    }

    /// The account of the key.
    pub(crate) fn account(&self, prefix: &str) -> Option<Account> {
        let address = chain::key::key_address(KEY_TYPE, &[&[0x0a, 33][..], &self.key].concat())?;
        Some(Account::new(address.as_bytes().try_into().ok()?, Some(self.key), prefix))
    }
}

impl Template {
    /// The template of a transaction in which these values are to be replaced.
    pub(crate) fn compile(recorded: &Recorded<'_>, values: &Values, dialect: &Dialect) -> Option<Self> {
        let auth = Auth::of(&recorded.raw)?;
        let raw = fields(&recorded.raw)?;
        let (body, signature) = (bytes(&raw, 1), bytes(&raw, 3));
        let head: ResultHead<'_> = serde_json::from_str(&recorded.result).ok()?;
        let data = STANDARD.decode(head.data.unwrap_or_default()).ok()?;
        let needles = needles(values, dialect);
        let mut of_result = needles.clone();
        of_result.push(Needle::new(STANDARD.encode(signature), Slot::Signature));
        if let Some(data) = head.data.filter(|data| !data.is_empty()) {
            of_result.push(Needle::new(data, Slot::Data));
        }
        let template = Self {
            body: Text::cut(body, &needles),
            mode: auth.mode.to_vec(),
            fee: auth.fee.to_vec(),
            data: Text::cut(&data, &needles),
            result: Text::cut(recorded.result.as_bytes(), &of_result),
            has_data: head.data.is_some(),
            code: head.code,
            gas_wanted: head.gas_wanted.parse().ok()?,
            gas_used: head.gas_used.parse().ok()?,
            signature_len: signature.len(),
            metadata: dialect.metadata,
            evm: match recorded.evm {
                Some((receipt, trace)) => {
                    Some(EvmTemplate::compile(body, receipt, trace, &needles, values, dialect.chain_id)?)
                }
                None => None,
            },
        };
        template.renders(recorded, values).then_some(template)
    }

    /// Whether the template with these values is the recorded transaction.
    fn renders(&self, recorded: &Recorded<'_>, values: &Values) -> bool {
        let mut result = Vec::new();
        self.render_result(&mut result, values);
        if self.raw(values) != recorded.raw || result != recorded.result.as_bytes() {
            return false;
        }
        let Some((receipt, trace)) = recorded.evm else { return true };
        let Ok(head) = serde_json::from_str::<ReceiptHead<'_>>(receipt) else { return false };
        let number = |text: &str| u64::from_str_radix(&text[2..], 16).unwrap_or_default();
        let place = Place {
            height: number(head.block_number),
            eth_block: &head.block_hash[2..],
            position: number(head.transaction_index),
            gas_so_far: number(head.cumulative_gas_used),
        };
        let (mut receipts, mut traces) = (Vec::new(), Vec::new());
        self.render_evm(&mut receipts, &mut traces, values, place);
        receipts == receipt.as_bytes() && traces == trace.as_bytes()
    }

    /// Call frames of the trace.
    pub(crate) fn frames(&self) -> u64 {
        self.evm.as_ref().map_or(0, |evm| evm.frames)
    }

    /// The raw transaction.
    pub(crate) fn raw(&self, values: &Values) -> Vec<u8> {
        let (mut body, mut signer, mut raw) = (Vec::new(), Vec::new(), Vec::new());
        self.body.render(&mut body, |slot, out| values.write(slot, out));
        let (mut key, mut auth) = (Vec::new(), Vec::new());
        push_bytes(&mut auth, 1, &values.sender.key.unwrap_or([0; 33]));
        push_bytes(&mut key, 1, KEY_TYPE.as_bytes());
        push_bytes(&mut key, 2, &auth);
        push_bytes(&mut signer, 1, &key);
        push_bytes(&mut signer, 2, &self.mode);
        push_number(&mut signer, 3, values.sequence);
        auth.clear();
        push_bytes(&mut auth, 1, &signer);
        push_bytes(&mut auth, 2, &self.fee);
        push_bytes(&mut raw, 1, &body);
        push_bytes(&mut raw, 2, &auth);
        push_bytes(&mut raw, 3, &values.signature);
        raw
    }

    /// The result's data, base64; `None` if it has none.
    pub(crate) fn data(&self, values: &Values) -> Option<String> {
        let mut data = Vec::new();
        self.data.render(&mut data, |slot, out| values.write(slot, out));
        self.has_data.then(|| STANDARD.encode(data))
    }

    /// Appends the result.
    pub(crate) fn render_result(&self, out: &mut Vec<u8>, values: &Values) {
        self.result.render(out, |slot, out| match slot {
            Slot::Data => out.extend_from_slice(self.data(values).unwrap_or_default().as_bytes()),
            Slot::Account(role, Form::Store) => {
                if let (Some(account), Some(metadata)) = (values.account(role), &self.metadata) {
                    out.extend_from_slice(store(&account.address, metadata).as_bytes());
                }
            }
            slot => values.write(slot, out),
        });
    }

    /// Appends receipt and trace; returns the hash of the Ethereum transaction and the filter.
    pub(crate) fn render_evm(
        &self,
        receipts: &mut Vec<u8>,
        traces: &mut Vec<u8>,
        values: &Values,
        place: Place<'_>,
    ) -> ([u8; 32], Bloom) {
        let Some(evm) = &self.evm else { return Default::default() };
        let (hash, bloom) = (evm.hash(values), evm.bloom(values));
        let hex = hex::encode(hash);
        let write = |slot: Slot, out: &mut Vec<u8>| match slot {
            Slot::EthHash => out.extend_from_slice(hex.as_bytes()),
            Slot::EthBlock => out.extend_from_slice(place.eth_block.as_bytes()),
            Slot::Height => out.extend_from_slice(format!("{:x}", place.height).as_bytes()),
            Slot::Position => out.extend_from_slice(format!("{:x}", place.position).as_bytes()),
            Slot::GasSoFar => out.extend_from_slice(format!("{:x}", place.gas_so_far).as_bytes()),
            Slot::Bloom => out.extend_from_slice(hex::encode(bloom).as_bytes()),
            slot => values.write(slot, out),
        };
        evm.receipt.render(receipts, write);
        evm.trace.render(traces, write);
        (hash, bloom)
    }
}

impl EvmTemplate {
    fn compile(
        body: &[u8],
        receipt: &str,
        trace: &str,
        needles: &[Needle],
        values: &Values,
        chain_id: u64,
    ) -> Option<Self> {
        let body = fields(body)?;
        let memo: Memo<'_> = serde_json::from_slice(bytes(&body, 2)).ok()?;
        let message = fields(bytes(&body, 1))?;
        let creates = bytes(&message, 1).ends_with(b"MsgCreate");
        let message = fields(bytes(&message, 2))?;
        let (to, input, value) = if creates { (0, 2, 3) } else { (2, 3, 4) };
        let text = |field| std::str::from_utf8(bytes(&message, field)).ok();
        let to = if creates { Vec::new() } else { hex::decode(text(to)?.strip_prefix("0x")?).ok()? };
        let input = text(input)?.strip_prefix("0x")?;
        if memo.kind != 0 || memo.gas_fee_cap.get() != "0" {
            return None;
        }
        let head: ReceiptHead<'_> = serde_json::from_str(receipt).ok()?;
        let (mut bloom, mut topics, mut contract_logs) = (Bloom::ZERO, Vec::new(), false);
        for log in &head.logs {
            let address = log.address.get(2..)?;
            if values.contract.as_ref().is_some_and(|contract| contract.hex == address) {
                contract_logs = true;
            } else {
                accrue(&mut bloom, &hex::decode(address).ok()?);
            }
            for topic in &log.topics {
                match Text::cut(topic.as_bytes(), needles).only_slot() {
                    Some(slot) => topics.push(slot),
                    None => accrue(&mut bloom, &hex::decode(topic.get(2..)?).ok()?),
                }
            }
        }
        let frames = memchr::memmem::find_iter(trace.as_bytes(), br#""gasUsed":"#).count();
        let needles_of_tx = needles;
        let mut needles = needles.to_vec();
        let member = |name: &str, value: &str| format!(r#""{name}":"{value}""#);
        let end = Part::Constant("\"");
        needles.extend([
            Needle::new(head.transaction_hash.get(2..)?, Slot::EthHash),
            Needle::new(head.block_hash.get(2..)?, Slot::EthBlock),
            Needle::new(head.logs_bloom.get(2..)?, Slot::Bloom),
            Needle::of(
                member("blockNumber", head.block_number),
                &[Part::Constant(r#""blockNumber":"0x"#), Part::Slot(Slot::Height), end.clone()],
            ),
            Needle::of(
                member("transactionIndex", head.transaction_index),
                &[Part::Constant(r#""transactionIndex":"0x"#), Part::Slot(Slot::Position), end.clone()],
            ),
            Needle::of(
                member("cumulativeGasUsed", head.cumulative_gas_used),
                &[Part::Constant(r#""cumulativeGasUsed":"0x"#), Part::Slot(Slot::GasSoFar), end],
            ),
        ]);
        Some(Self {
            chain_id,
            gas_limit: memo.gas_limit,
            to,
            value: U256::from_str_radix(text(value).filter(|value| !value.is_empty()).unwrap_or("0"), 10)
                .ok()?,
            input: Text::cut(input.as_bytes(), needles_of_tx),
            receipt: Text::cut(receipt.as_bytes(), &needles),
            trace: Text::cut(trace.as_bytes(), &needles),
            bloom,
            topics,
            contract_logs,
            frames: frames as u64,
        })
    }

    fn hash(&self, values: &Values) -> [u8; 32] {
        let mut input = Vec::new();
        self.input.render(&mut input, |slot, out| values.write(slot, out));
        let input = hex::decode(input).unwrap_or_default();
        let (nonce, signature) = (values.sequence, &values.signature[..]);
        let tx = LegacyTx {
            nonce,
            gas_limit: self.gas_limit,
            to: &self.to,
            value: self.value,
            input: &input,
            signature,
        };
        tx.hash(self.chain_id)
    }

    fn bloom(&self, values: &Values) -> Bloom {
        let mut bloom = self.bloom;
        for topic in &self.topics {
            match topic {
                Slot::Account(role, _) => {
                    values.account(*role).map(|account| accrue(&mut bloom, &word(&account.address)))
                }
                _ => values.token.map(|token| accrue(&mut bloom, &U256::from(token).to_be_bytes::<32>())),
            };
        }
        if let Some(contract) = values.contract.as_ref().filter(|_| self.contract_logs) {
            accrue(&mut bloom, &contract.address);
        }
        bloom
    }
}

impl Values {
    pub(crate) fn account(&self, role: Role) -> Option<&Account> {
        match role {
            Role::Sender => Some(&self.sender),
            Role::Recipient => self.recipient.as_ref(),
            Role::Contract => self.contract.as_ref(),
        }
    }

    /// Appends the content of a slot that depends on the transaction alone.
    fn write(&self, slot: Slot, out: &mut Vec<u8>) {
        match slot {
            Slot::Account(role, form) => {
                let Some(account) = self.account(role) else { return };
                match form {
                    Form::Hex => out.extend_from_slice(account.hex.as_bytes()),
                    Form::Checksum => out.extend_from_slice(account.checksum().as_bytes()),
                    Form::ShortHex => out.extend_from_slice(account.hex.trim_start_matches('0').as_bytes()),
                    Form::Bech32 => out.extend_from_slice(account.bech32.as_bytes()),
                    Form::Bytes => out.extend_from_slice(&account.address),
                    // Only results have it.
                    Form::Store => {}
                }
            }
            Slot::Sequence => out.extend_from_slice(self.sequence.to_string().as_bytes()),
            Slot::Signature => out.extend_from_slice(STANDARD.encode(&self.signature).as_bytes()),
            Slot::TokenWord => {
                out.extend_from_slice(format!("{:064x}", self.token.unwrap_or_default()).as_bytes());
            }
            Slot::TokenText => out.extend_from_slice(token_text(self.token.unwrap_or_default()).as_bytes()),
            Slot::Object(form) => {
                let object = object(self.token.unwrap_or_default());
                match form {
                    Form::Bytes => out.extend_from_slice(&object),
                    _ => out.extend_from_slice(hex::encode(object).trim_start_matches('0').as_bytes()),
                }
            }
            Slot::Data
            | Slot::EthHash
            | Slot::EthBlock
            | Slot::Height
            | Slot::Position
            | Slot::GasSoFar
            | Slot::Bloom => {}
        }
    }
}

/// The address of an NFT's object on Move, from which the number follows: its last 8 bytes.
pub(crate) fn object(token: u64) -> [u8; 32] {
    let mut object = digest("object", 0, token);
    object[24..].copy_from_slice(&token.to_be_bytes());
    object
}

/// The address of an account's primary store, without leading zeros (`object::create_user_derived_object_address`).
fn store(owner: &[u8; 20], metadata: &[u8; 32]) -> String {
    let hash =
        Sha3_256::new().chain_update([0; 12]).chain_update(owner).chain_update(metadata).chain_update([0xfc]);
    hex::encode(hash.finalize()).trim_start_matches('0').to_owned()
}

/// The needles of everything that depends on the transaction alone, in all forms of the chain.
fn needles(values: &Values, dialect: &Dialect) -> Vec<Needle> {
    let mut needles = Vec::new();
    let hex_form = if dialect.vm == Vm::Move { Form::ShortHex } else { Form::Hex };
    for role in [Role::Sender, Role::Recipient, Role::Contract] {
        let Some(account) = values.account(role) else { continue };
        let slot = |form| Slot::Account(role, form);
        let checksum = account.checksum();
        if checksum != account.hex {
            needles.push(Needle::new(checksum, slot(Form::Checksum)));
        }
        let hex = if hex_form == Form::Hex { &*account.hex } else { account.hex.trim_start_matches('0') };
        needles.push(Needle::new(hex, slot(hex_form)));
        if let Some(metadata) = &dialect.metadata {
            needles.push(Needle::new(store(&account.address, metadata), slot(Form::Store)));
        }
        needles.push(Needle::new(&*account.bech32, slot(Form::Bech32)));
        needles.push(Needle::new(account.address, slot(Form::Bytes)));
    }
    needles.push(Needle::of(
        format!("{}/{}", values.sender.bech32, values.sequence),
        &[
            Part::Slot(Slot::Account(Role::Sender, Form::Bech32)),
            Part::Constant("/"),
            Part::Slot(Slot::Sequence),
        ],
    ));
    if let (Some(token), Vm::Evm) = (values.token, dialect.vm) {
        needles.push(Needle::new(format!("{token:064x}"), Slot::TokenWord));
    } else if let Some(token) = values.token {
        needles.push(Needle::new(token_text(token), Slot::TokenText));
        let object = object(token);
        needles.push(Needle::new(hex::encode(object), Slot::Object(Form::ShortHex)));
        needles.push(Needle::new(object, Slot::Object(Form::Bytes)));
    }
    needles
}
