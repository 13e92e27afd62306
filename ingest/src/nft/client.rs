//! NFT metadata client: sends the questions about one height to the node.
//!
//! # Invariants
//! * A reply is final (`finality`).
//! * Only a refusal by the contract or module, or a reply that does not decode, is a "no". Every other failure leaves
//!   the question open.

use std::sync::atomic::{AtomicBool, Ordering};

use chain::nft::{move_vm, wasm};
use chain::{Account, Text, U256, Vm, evm::abi};
use futures_util::StreamExt as _;
use node::{ContractCall, Error, Evm, Node, Probe, Rest, StateAt};
use schema::nft::{About, Subject};

use super::Reply;
use crate::finality::{Finality, Returned, answer_or_refusal, call_all};

/// Concurrent requests for one height, if each question is a request of its own.
const CONCURRENT_REQUESTS: usize = 16;

/// Queries the node of one chain.
pub(crate) struct MetadataClient {
    pub(crate) finality: Finality,
    vm: Vm,
    /// True if a request has timed out, and none was answered since.
    unresponsive: AtomicBool,
}

impl MetadataClient {
    /// A client for a chain with this VM.
    pub(crate) fn new(finality: Finality, vm: Vm) -> Self {
        Self { finality, vm, unresponsive: AtomicBool::new(false) }
    }

    fn node(&self) -> &Node {
        &self.finality.node
    }

    /// True if the last requests timed out.
    pub(crate) fn is_unresponsive(&self) -> bool {
        self.unresponsive.load(Ordering::Relaxed)
    }

    /// Records a timeout.
    pub(crate) fn give_up(&self) {
        self.unresponsive.store(true, Ordering::Relaxed);
    }

    /// A probe of an indexed height, if its questions need one and its block yields one.
    pub(crate) fn probe(&self, height: u64) -> Result<Option<Probe>, crate::Error> {
        match self.vm {
            Vm::Evm => Ok(None),
            _ => self.finality.probe(height),
        }
    }

    /// True if a contract that was not a collection may become one. A Move object gets its type when it is made.
    pub(crate) fn asks_again(&self) -> bool {
        self.vm != Vm::Move
    }

    /// True if the service for this chain's questions is configured.
    pub(crate) fn can_ask(&self) -> bool {
        match self.vm {
            Vm::Evm => self.node().evm.is_some(),
            Vm::Move | Vm::Wasm => self.node().rest.is_some(),
            Vm::None => false,
        }
    }

    /// The replies to `questions`, in their order, for the state of `height` (`probe` is of its block), or for the
    /// latest state if that one is pruned. A question with an error must be asked again.
    pub(crate) async fn ask(
        &self,
        height: u64,
        probe: Option<&Probe>,
        questions: &[About],
    ) -> Vec<Result<Reply, Error>> {
        let replies = match (self.node(), self.vm) {
            (Node { evm: Some(evm), .. }, Vm::Evm) => {
                erc721(evm, &self.finality.contract_state(height), questions).await
            }
            (Node { rest: Some(rest), .. }, Vm::Move | Vm::Wasm) => {
                let state = match self.finality.state(height, probe) {
                    Ok(state) => state,
                    Err(error) => return vec![Err(error); questions.len()],
                };
                let requests: Vec<_> =
                    questions.iter().map(|about| self.by_rest(rest, &state, about)).collect();
                futures_util::stream::iter(requests).buffered(CONCURRENT_REQUESTS).collect().await
            }
            _ => vec![Ok(Reply::Unknown); questions.len()],
        };
        if replies.iter().any(Result::is_ok) {
            self.unresponsive.store(false, Ordering::Relaxed);
        }
        replies
    }

    async fn by_rest(&self, rest: &Rest, state: &StateAt, about: &About) -> Result<Reply, Error> {
        if self.vm == Vm::Move {
            move_object(rest, state, about).await
        } else {
            self.cw721(rest, state, about).await
        }
    }

    async fn cw721(&self, rest: &Rest, state: &StateAt, about: &About) -> Result<Reply, Error> {
        let prefix = &self.finality.prefix;
        let bech32 = |bytes: &[u8]| {
            let account = Account::from_bytes(bytes);
            account.map(|account| account.to_bech32(prefix)).unwrap_or_default()
        };
        match about {
            About::Collection(subject) | About::Name(subject) => {
                let contract = bech32(&subject.address);
                let info = answer_or_refusal(state, |state| {
                    rest.wasm_smart(&contract, r#"{"contract_info":{}}"#, state)
                })
                .await?;
                let Some(name) = info.and_then(|info| wasm::contract_name(&info)) else {
                    return Ok(Reply::No);
                };
                if matches!(about, About::Name(_)) {
                    return Ok(Reply::named(name));
                }
                let contract = answer_or_refusal(state, |state| rest.wasm_contract(&contract, state)).await?;
                let creator = contract.and_then(|contract| wasm::contract_creator(&contract, prefix));
                Ok(Reply::Collection { name, creator })
            }
            About::Uri(token) => {
                let contract = bech32(&token.collection);
                let query = serde_json::json!({ "nft_info": { "token_id": token.token_id } }).to_string();
                let info =
                    answer_or_refusal(state, |state| rest.wasm_smart(&contract, &query, state)).await?;
                Ok(info.and_then(|info| wasm::token_uri(&info)).map_or(Reply::No, Reply::Uri))
            }
            About::Object(_) => Ok(Reply::No),
            About::Range(_) | About::Proposer(_) => Ok(Reply::Unknown),
        }
    }
}

async fn move_object(rest: &Rest, state: &StateAt, about: &About) -> Result<Reply, Error> {
    let resource = |address: &[u8], tag: &'static str| {
        let address = Account::from_bytes(address).map(|address| address.to_hex()).unwrap_or_default();
        answer_or_refusal(state, move |state| {
            let address = address.clone();
            async move { rest.move_resource(&address, tag, state).await }
        })
    };
    Ok(match about {
        About::Collection(subject) | About::Name(subject) => {
            let answer = resource(&subject.address, "0x1::collection::Collection").await?;
            let collection = answer.and_then(|answer| move_vm::collection_resource(&answer));
            collection.map_or(Reply::No, |it| Reply::Collection { name: it.name, creator: Some(it.creator) })
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
        About::Range(_) | About::Proposer(_) => Reply::Unknown,
    })
}

/// The next call to an EVM contract.
enum Step {
    /// ERC-165: does it declare ERC-721?
    Erc165,
    /// Does it return the same owner of a token as its events?
    OwnerOf,
    Name,
    Uri,
    Done(Result<Reply, Error>),
}

/// Batches the next call of every contract, until all have answered.
async fn erc721(evm: &Evm, state: &StateAt, questions: &[About]) -> Vec<Result<Reply, Error>> {
    let first = |about: &About| match about {
        About::Collection(_) => Step::Erc165,
        About::Name(_) => Step::Name,
        About::Uri(_) => Step::Uri,
        // The backfill asks for each token of a range by itself, and for proposers elsewhere.
        About::Object(_) | About::Range(_) | About::Proposer(_) => Step::Done(Ok(Reply::Unknown)),
    };
    let mut steps: Vec<Step> = questions.iter().map(first).collect();
    loop {
        let (mut places, mut calls) = (Vec::new(), Vec::new());
        for (place, (step, about)) in steps.iter_mut().zip(questions).enumerate() {
            if matches!(step, Step::Done(_)) {
                continue;
            }
            match call(step, about) {
                Some(call) => {
                    places.push(place);
                    calls.push(call);
                }
                // An invalid address or number is not a contract or token of this kind.
                None => *step = Step::Done(Ok(Reply::No)),
            }
        }
        if calls.is_empty() {
            break;
        }
        for (place, answer) in places.into_iter().zip(call_all(evm, state, &calls).await) {
            let answer = answer.map(|returned| returned.map(|Returned { bytes, .. }| bytes));
            steps[place] = match answer {
                Ok(answer) => next(&steps[place], &questions[place], answer.as_deref()),
                Err(error) => Step::Done(Err(error)),
            };
        }
    }
    let reply = |step| if let Step::Done(reply) = step { reply } else { Ok(Reply::Unknown) };
    steps.into_iter().map(reply).collect()
}

fn call(step: &Step, about: &About) -> Option<ContractCall> {
    let (contract, token_id) = match about {
        About::Collection(subject) | About::Name(subject) => (&subject.address, &subject.token_id),
        About::Uri(token) => (&token.collection, &token.token_id),
        About::Object(_) | About::Range(_) | About::Proposer(_) => return None,
    };
    let to = <[u8; 20]>::try_from(contract.as_slice()).ok()?;
    let data = match step {
        Step::Erc165 => abi::supports_erc721(),
        Step::OwnerOf => abi::owner_of(decimal(token_id)?),
        Step::Name => abi::name(),
        Step::Uri => abi::token_uri(decimal(token_id)?),
        Step::Done(_) => return None,
    };
    Some(ContractCall { to, data })
}

/// The step after a reply; `None` is a revert.
fn next(step: &Step, about: &About, answer: Option<&[u8]>) -> Step {
    let subject = if let About::Collection(subject) = about { subject } else { &Subject::default() };
    let done = |reply| Step::Done(Ok(reply));
    match step {
        Step::Erc165 if answer.and_then(abi::read_bool) == Some(true) => Step::Name,
        Step::Erc165 if subject.owner.is_empty() || decimal(&subject.token_id).is_none() => {
            done(Reply::Unknown)
        }
        Step::Erc165 => Step::OwnerOf,
        Step::OwnerOf => match answer.and_then(abi::read_address) {
            Some(owner) if owner.as_slice() == subject.owner => Step::Name,
            _ => done(Reply::No),
        },
        Step::Name => {
            let name = answer.and_then(abi::read_string);
            // A contract that refuses its name now keeps the one that it had.
            done(match (name, about) {
                (None, About::Name(_)) => Reply::No,
                (name, _) => Reply::named(name.unwrap_or(Text::Plain(String::new()))),
            })
        }
        Step::Uri => done(answer.and_then(abi::read_string).map_or(Reply::No, Reply::Uri)),
        Step::Done(reply) => Step::Done(reply.clone()),
    }
}

/// The number in an EVM token's id.
fn decimal(token_id: &str) -> Option<U256> {
    // Text that is not a number is not a token of this kind.
    U256::from_str_radix(token_id, 10).ok()
}
