//! Messages that send NFTs: to an account of the same chain, or over an ICS-721 channel.
//!
//! A message is amino JSON with its amino name, the form in which the wallet widget takes it.
//!
//! | chain | same chain | another chain |
//! |---|---|---|
//! | Move | `0x1::object::transfer_call` | module `nft-transfer` |
//! | EVM | the collection's `transferFrom` | module `nft-transfer` |
//! | Wasm | the collection's `transfer_nft` | the collection's `send_nft` to the ICS-721 contract or its proxy |

use alloy::sol_types::SolCall as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::{Account, U256, Vm};
use registry::{ChainRef, End, Facts, Registry};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::address::{self, Party};
use crate::amino::{Call, Execute, Function, Invocation, Never, NftTransfer, argument};
use crate::calls::Erc721;
use crate::error::BuildError;

/// Port of the module on chains with its own ICS-721 module; on Wasm chains a contract has a port.
const MODULE_PORT: &str = "nft-transfer";
/// Prefix of the port of a contract.
const CONTRACT_PORT: &str = "wasm.";
/// Most tokens of one request.
pub const MAX_TOKENS: usize = 30;
/// Longest class id, token id or path in bytes.
const MAX_TEXT: usize = 256;

/// NFTs to send.
#[derive(Clone, Copy)]
pub struct NftRequest<'a> {
    /// Chains and channels.
    pub registry: &'a Registry,
    /// Latest chain facts.
    pub facts: &'a Facts,
    /// Chain of the tokens.
    pub from: ChainRef,
    /// Chain of the receiver.
    pub to: ChainRef,
    /// Owner, who signs.
    pub from_address: &'a str,
    /// Receiver.
    pub to_address: &'a str,
    /// Contract of the collection; unused on Move chains.
    pub collection: &'a str,
    /// Tokens, 1 to [`MAX_TOKENS`].
    pub token_ids: &'a [String],
    /// Move: addresses of the token objects.
    pub objects: &'a [String],
    /// Class of the collection on `from`, for another chain.
    pub class_id: Option<&'a str>,
    /// Path of a voucher's class: ports and channels, the latest first.
    pub class_path: Option<&'a str>,
    /// Wasm: contract that the collection sends to instead of the ICS-721 contract.
    pub outgoing_proxy: Option<&'a str>,
    /// Time at which packets are returned, Unix time in nanoseconds.
    pub timeout: u64,
}

/// A message by its amino name.
#[derive(Debug, Clone, Serialize)]
pub struct NftMsg {
    /// For example `nft-transfer/MsgTransfer`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Amino JSON.
    pub value: Box<RawValue>,
}

/// `wasm/MsgExecuteContract`, without coins.
#[derive(Serialize)]
struct ExecuteContract<M> {
    sender: String,
    contract: String,
    msg: M,
    funds: [(); 0],
}

/// Messages of CW-721 collections.
#[derive(Serialize)]
#[serde(rename_all = "snake_case")]
enum Cw721 {
    TransferNft { recipient: String, token_id: String },
    SendNft { contract: String, token_id: String, msg: String },
}

/// `IbcOutgoingMsg` of the ICS-721 contract.
#[derive(Serialize)]
struct Outgoing {
    receiver: String,
    channel_id: String,
    timeout: Timeout,
    memo: Option<String>,
}

/// `IbcTimeout` of CosmWasm: by time only.
#[derive(Serialize)]
struct Timeout {
    block: Option<()>,
    timestamp: String,
}

/// The messages of one transaction, which the owner signs.
pub fn nft(request: &NftRequest<'_>) -> Result<Vec<NftMsg>, BuildError> {
    let NftRequest { registry, from, to, token_ids, .. } = *request;
    if !(1..=MAX_TOKENS).contains(&token_ids.len()) {
        return Err(invalid("token_ids", format!("{} entries, must be 1 to {MAX_TOKENS}", token_ids.len())));
    }
    for id in token_ids {
        text("token_ids", id)?;
    }
    let owner = address::read(registry, from, "from_address", request.from_address)?;
    let receiver = address::read(registry, to, "to_address", request.to_address)?;
    if from == to {
        return within(request, &owner, &receiver);
    }
    let end = sending_end(request)?;
    if let Some(contract) = end.port.strip_prefix(CONTRACT_PORT) {
        return by_contract(request, &owner, &receiver, end, contract);
    }
    let class = request.class_id.ok_or_else(|| invalid("class_id", "it is missing".to_owned()))?;
    text("class_id", class)?;
    let transfer = NftTransfer {
        source_port: end.port.clone(),
        source_channel: end.channel.clone(),
        class_id: class.to_owned(),
        token_ids: token_ids.to_vec(),
        sender: owner.text,
        receiver: receiver.text,
        timeout_height: Never {},
        timeout_timestamp: request.timeout.to_string(),
        memo: String::new(),
    };
    Ok(vec![msg("nft-transfer/MsgTransfer", &transfer)?])
}

/// The sending end of the channel: that of a voucher's path if it leads to the chain, because only there it is the
/// original again; else the first one that is not paused.
fn sending_end<'a>(request: &NftRequest<'a>) -> Result<&'a End, BuildError> {
    let NftRequest { registry, from, to, .. } = *request;
    let is_open = |end: &End| {
        let module = end.port == MODULE_PORT && registry[from].vm != Vm::Wasm;
        module || end.port.starts_with(CONTRACT_PORT) && registry[from].vm == Vm::Wasm
    };
    let channels = registry.channels().filter_map(|(channel, about)| {
        let (here, there) = (about.on(from)?, about.beyond(from)?);
        (there.chain == to && is_open(here)).then_some((channel, here))
    });
    let channels: Vec<_> = channels.collect();
    let came_over = |end: &End| {
        let path = request.class_path.unwrap_or_default();
        path.strip_prefix(&format!("{}/{}", end.port, end.channel))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let back = channels.iter().find(|(_, end)| came_over(end));
    let open = channels.iter().find(|(channel, _)| request.facts.paused(registry, *channel).is_none());
    let (from, to) = (&registry[from].id, &registry[to].id);
    match (back, open, channels.first()) {
        (Some((channel, end)), ..) => match request.facts.paused(registry, *channel) {
            None => Ok(end),
            Some(why) => Err(BuildError::Nft(format!(
                "the channel {}/{} of {from} is paused: {why}",
                end.port, end.channel
            ))),
        },
        (None, Some((_, end)), _) => Ok(end),
        (None, None, Some(_)) => Err(BuildError::Nft(format!(
            "every channel for NFTs from {from} to {to} is paused: try again later"
        ))),
        (None, None, None) => Err(BuildError::Nft(format!(
            "the registry has no channel for NFTs from {from} to {to}: send them to a chain between the two first"
        ))),
    }
}

/// Tokens to another account of the chain.
fn within(request: &NftRequest<'_>, owner: &Party, receiver: &Party) -> Result<Vec<NftMsg>, BuildError> {
    let NftRequest { registry, from, token_ids, .. } = *request;
    match registry[from].vm {
        Vm::Move => move_objects(request, owner, receiver),
        Vm::Evm => {
            let contract = address::contract("collection_address", request.collection)
                .map_err(|_| invalid("collection_address", "it must be 0x and 40 hex digits".to_owned()))?;
            let (sender, to) = (
                address::evm_address(registry, from, owner)?,
                address::evm_address(registry, from, receiver)?,
            );
            let call = |id: &String| {
                let token = U256::from_str_radix(id, 10).map_err(|_| {
                    invalid(
                        "token_ids",
                        format!("`{}` must be a decimal number", crate::error::truncated(id)),
                    )
                })?;
                let data = Erc721::transferFromCall { from: sender, to, tokenId: token }.abi_encode();
                let input = Invocation::new(&contract.to_string(), &data);
                msg("evm/MsgCall", &Call { sender: owner.text.clone(), input })
            };
            token_ids.iter().map(call).collect()
        }
        Vm::Wasm => token_ids
            .iter()
            .map(|id| {
                let transfer = Cw721::TransferNft { recipient: receiver.text.clone(), token_id: id.clone() };
                execute(request, owner, transfer)
            })
            .collect(),
        Vm::None => Err(BuildError::Nft(format!("cairn sends no NFTs within {}", registry[from].id))),
    }
}

fn move_objects(
    request: &NftRequest<'_>,
    owner: &Party,
    receiver: &Party,
) -> Result<Vec<NftMsg>, BuildError> {
    if request.objects.len() != request.token_ids.len() {
        let why = format!("{} entries, must be one for each of token_ids", request.objects.len());
        return Err(invalid("object_addresses", why));
    }
    let transfer = |object: &String| {
        let object = Account::from_hex_literal(object).ok_or_else(|| {
            invalid(
                "object_addresses",
                format!("`{}` must be 0x and hex digits", crate::error::truncated(object)),
            )
        })?;
        let args = [object, receiver.account].map(|account| argument(&padded(account))).into();
        let function = Function::new("0x1", "object", "transfer_call", args);
        msg("move/MsgExecute", &Execute::new(owner.text.clone(), function))
    };
    request.objects.iter().map(transfer).collect()
}

/// An address of Move, which has 32 bytes.
fn padded(account: Account) -> [u8; 32] {
    let (bytes, mut padded) = (account.as_bytes(), [0; 32]);
    padded[32 - bytes.len()..].copy_from_slice(bytes);
    padded
}

/// Tokens of a CW-721 collection over the channel of an ICS-721 contract.
fn by_contract(
    request: &NftRequest<'_>,
    owner: &Party,
    receiver: &Party,
    end: &End,
    contract: &str,
) -> Result<Vec<NftMsg>, BuildError> {
    let outgoing = Outgoing {
        receiver: receiver.text.clone(),
        channel_id: end.channel.clone(),
        timeout: Timeout { block: None, timestamp: request.timeout.to_string() },
        memo: None,
    };
    let outgoing = STANDARD.encode(crate::amino::json(&outgoing));
    let to = match request.outgoing_proxy {
        Some(proxy) => address::read(request.registry, request.from, "outgoing_proxy", proxy)?.text,
        None => contract.to_owned(),
    };
    let send = |id: &String| {
        let send = Cw721::SendNft { contract: to.clone(), token_id: id.clone(), msg: outgoing.clone() };
        execute(request, owner, send)
    };
    request.token_ids.iter().map(send).collect()
}

fn execute(request: &NftRequest<'_>, owner: &Party, msg_of_collection: Cw721) -> Result<NftMsg, BuildError> {
    let contract =
        address::read(request.registry, request.from, "collection_address", request.collection)?.text;
    let execute = ExecuteContract { sender: owner.text.clone(), contract, msg: msg_of_collection, funds: [] };
    msg("wasm/MsgExecuteContract", &execute)
}

fn msg(kind: &'static str, value: &impl Serialize) -> Result<NftMsg, BuildError> {
    let value = RawValue::from_string(crate::amino::json(value))
        .map_err(|error| BuildError::Nft(error.to_string()))?;
    Ok(NftMsg { kind, value })
}

fn text(field: &str, text: &str) -> Result<(), BuildError> {
    if text.is_empty() || text.len() > MAX_TEXT {
        return Err(invalid(field, format!("{} bytes, must be 1 to {MAX_TEXT}", text.len())));
    }
    Ok(())
}

fn invalid(field: &str, why: String) -> BuildError {
    BuildError::Nft(format!("invalid {field}: {why}"))
}
