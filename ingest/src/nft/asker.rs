//! One question about an NFT, put to the node.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chain::nft::{move_vm, wasm};
use chain::{Account, U256, Vm, abi};
use node::{Error, Evm, Kind, Node, Rest};
use schema::nft::{About, Subject, TokenKey};

use super::Reply;

/// Questions of one block or of the completer that are under way at once.
pub(crate) const AT_ONCE: usize = 16;

/// Asks the node of one chain.
pub(crate) struct Asker {
    node: Arc<Node>,
    vm: Vm,
    prefix: String,
    /// A question was given up, and since then none was answered.
    deaf: AtomicBool,
}

impl Asker {
    /// Asks `node` about a chain of this kind, whose addresses have this prefix.
    pub(crate) fn new(node: Arc<Node>, vm: Vm, prefix: String) -> Self {
        Self { node, vm, prefix, deaf: AtomicBool::new(false) }
    }

    /// Whether the node has not answered of late.
    pub(crate) fn is_deaf(&self) -> bool {
        self.deaf.load(Ordering::Relaxed)
    }

    /// A question was given up.
    pub(crate) fn give_up(&self) {
        self.deaf.store(true, Ordering::Relaxed);
    }

    /// Whether the node has the service that this chain's questions go to.
    pub(crate) fn can_ask(&self) -> bool {
        match self.vm {
            Vm::Evm => self.node.evm.is_some(),
            Vm::Move | Vm::Wasm => self.node.rest.is_some(),
            Vm::None => false,
        }
    }

    /// The answer to `about` as it was at `height`, or as it is if the node has forgotten that height. An error is of the
    /// kind that passes: ask again.
    pub(crate) async fn ask(&self, height: u64, about: &About) -> Result<Reply, Error> {
        let reply = self.put(height, about).await?;
        self.deaf.store(false, Ordering::Relaxed);
        Ok(reply)
    }

    async fn put(&self, height: u64, about: &About) -> Result<Reply, Error> {
        match (&*self.node, self.vm, about) {
            (Node { evm: Some(evm), .. }, Vm::Evm, About::Collection(subject)) => {
                erc721(evm, height, subject).await
            }
            (Node { evm: Some(evm), .. }, Vm::Evm, About::Uri(token)) => erc721_uri(evm, height, token).await,
            (Node { rest: Some(rest), .. }, Vm::Move, about) => self.move_object(rest, height, about).await,
            (Node { rest: Some(rest), .. }, Vm::Wasm, about) => self.cw721(rest, height, about).await,
            _ => Ok(Reply::Unclear),
        }
    }

    async fn move_object(&self, rest: &Rest, height: u64, about: &About) -> Result<Reply, Error> {
        let resource = |address: &[u8], tag: &'static str| {
            let address = Account::from_bytes(address).map(|address| address.to_hex()).unwrap_or_default();
            fixed(height, move |height| {
                let address = address.clone();
                async move { rest.move_resource(&address, tag, height).await }
            })
        };
        Ok(match about {
            About::Collection(subject) => {
                let answer = resource(&subject.address, "0x1::collection::Collection").await?;
                let collection = answer.and_then(|answer| move_vm::collection_resource(&answer));
                collection
                    .map_or(Reply::No, |it| Reply::Collection { name: it.name, creator: Some(it.creator) })
            }
            About::Object(subject) => {
                let answer = resource(&subject.address, "0x1::nft::Nft").await?;
                let token = answer.and_then(|answer| move_vm::nft_resource(&answer));
                token.map_or(Reply::No, |it| Reply::Token {
                    collection: it.collection,
                    token_id: it.token_id,
                    uri: it.uri,
                })
            }
            About::Uri(token) => {
                let answer = resource(&token.object, "0x1::nft::Nft").await?;
                let token = answer.and_then(|answer| move_vm::nft_resource(&answer));
                token.map_or(Reply::No, |it| Reply::Uri(it.uri))
            }
        })
    }

    async fn cw721(&self, rest: &Rest, height: u64, about: &About) -> Result<Reply, Error> {
        let bech32 = |bytes: &[u8]| {
            let account = Account::from_bytes(bytes);
            account.map(|account| account.to_bech32(&self.prefix)).unwrap_or_default()
        };
        match about {
            About::Collection(subject) => {
                let contract = bech32(&subject.address);
                let info =
                    fixed(height, |height| rest.wasm_smart(&contract, r#"{"contract_info":{}}"#, height))
                        .await?;
                let Some(name) = info.and_then(|info| wasm::contract_name(&info)) else {
                    return Ok(Reply::No);
                };
                let contract = fixed(height, |height| rest.wasm_contract(&contract, height)).await?;
                let creator = contract.and_then(|contract| wasm::contract_creator(&contract, &self.prefix));
                Ok(Reply::Collection { name, creator })
            }
            About::Uri(token) => {
                let contract = bech32(&token.collection);
                let query = serde_json::json!({ "nft_info": { "token_id": token.token_id } }).to_string();
                let info = fixed(height, |height| rest.wasm_smart(&contract, &query, height)).await?;
                Ok(info.and_then(|info| wasm::token_uri(&info)).map_or(Reply::No, Reply::Uri))
            }
            About::Object(_) => Ok(Reply::No),
        }
    }
}

/// Whether a contract is an ERC-721: it says so (ERC-165), or tells the owner of a token as its events do.
async fn erc721(evm: &Evm, height: u64, subject: &Subject) -> Result<Reply, Error> {
    let Ok(contract) = <[u8; 20]>::try_from(subject.address.as_slice()) else { return Ok(Reply::No) };
    let call = async |data: &[u8]| fixed(height, |height| evm.call(contract, data, height)).await;
    let says_so = call(&abi::supports_erc721()).await?.and_then(|answer| abi::read_bool(&answer));
    if says_so != Some(true) {
        let Some(token_id) = decimal(&subject.token_id).filter(|_| !subject.owner.is_empty()) else {
            return Ok(Reply::Unclear);
        };
        let owner = call(&abi::owner_of(token_id)).await?.and_then(|answer| abi::read_address(&answer));
        if owner.is_none_or(|owner| owner.as_slice() != subject.owner) {
            return Ok(Reply::No);
        }
    }
    let name = call(&abi::name()).await?.and_then(|answer| abi::read_string(&answer));
    Ok(Reply::Collection { name: name.unwrap_or_default(), creator: None })
}

async fn erc721_uri(evm: &Evm, height: u64, token: &TokenKey) -> Result<Reply, Error> {
    let contract = <[u8; 20]>::try_from(token.collection.as_slice());
    let (Ok(contract), Some(token_id)) = (contract, decimal(&token.token_id)) else {
        return Ok(Reply::No);
    };
    let data = abi::token_uri(token_id);
    let answer = fixed(height, |height| evm.call(contract, &data, height)).await?;
    Ok(answer.and_then(|answer| abi::read_string(&answer)).map_or(Reply::No, Reply::Uri))
}

/// The number that an EVM token's id is.
fn decimal(token_id: &str) -> Option<U256> {
    // What is no number is no token of this kind.
    U256::from_str_radix(token_id, 10).ok()
}

/// The answer to a question about the state at `height`, or about the latest where that one is pruned; `None` is a fixed
/// no.
pub(crate) async fn fixed<T, F>(height: u64, ask: impl Fn(Option<u64>) -> F) -> Result<Option<T>, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let answer = match ask(Some(height)).await {
        Err(Error::Pruned { .. }) => ask(None).await,
        answer => answer,
    };
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.kind() == Kind::Permanent => Ok(None),
        Err(error) => Err(error),
    }
}
