//! Asks the node for names, symbols and decimals of tokens that the optional index of them has questions about.
//!
//! Once the index is at the head of the chain, the state of its last block is asked: names change, and a node that prunes has no other
//! state. They are asked again in turns (`renewal`). The lane's writer writes the replies. A node that does not answer delays nothing.
//!
//! # Invariants
//! * A reply is final (`finality`). Only a refusal, or a reply that does not decode, says that there is nothing; after every other
//!   failure the question stays open.
//! * A token is asked alone after its first failure, so that no contract can keep the node from answering for others.

mod renewal;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use chain::evm::abi;
use chain::metadata::{self, Metadata};
use chain::movement::Token;
use chain::{Account, Vm};
use futures_util::StreamExt as _;
use node::retry::Backoff;
use node::{ContractCall, Error as NodeError, Evm, Kind, Node, Rest, StateAt};
use schema::tokens::{self, Described, FirstSeen};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::error::causes;
use crate::finality::{Finality, Returned, answer_or_refusal, call_all, is_deep};
use crate::optional::Fetched;
use crate::{Error, Progress, meter};

use self::renewal::Turn;

/// New tokens of a round, and as many that are asked again.
const ROUND: usize = 64;

/// New tokens in a request.
const TOGETHER: usize = 16;

/// Requests at once.
const REQUESTS: usize = 8;

/// Timeout of a request about tokens.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// Backoff between rounds of tokens that are asked again.
const PAUSES: Backoff =
    Backoff { initial: Duration::from_secs(5), max: Duration::from_mins(1), jitter: true };

/// Longest time until a new question is seen: a build of the index adds some without a new block.
const POLL: Duration = Duration::from_secs(1);

/// Pause after a failure of the database.
const RETRY: Duration = Duration::from_secs(30);

/// Time without a reply to some questions before a log line about them, and between two of these.
const REMINDER: Duration = Duration::from_mins(1);

/// Asks for metadata.
pub(crate) struct TokenSource {
    pub(crate) finality: Finality,
    pub(crate) vm: Vm,
    /// The head of the chain.
    pub(crate) chain: watch::Receiver<Progress>,
    /// The block lane.
    pub(crate) blocks: watch::Receiver<Progress>,
    /// To the writer of the block lane.
    pub(crate) found: mpsc::Sender<Fetched>,
    /// Interval between turns of tokens that are asked for another name; none if absent.
    pub(crate) renew_every: Option<Duration>,
}

type Question = (Token, FirstSeen);

/// Which questions were asked.
struct Asked {
    /// The last new one.
    last: u64,
    /// The last one that was asked again.
    again: u64,
    /// Rounds in turn without a reply.
    fruitless: u32,
    /// When the next ones are asked again.
    due: Instant,
    /// Since when some questions fail, or the last log line about it.
    failing: Option<Instant>,
}

impl TokenSource {
    /// Runs for ever; pauses after errors.
    pub(crate) async fn run(mut self) -> Infallible {
        loop {
            match self.follow().await {
                Ok(()) => return std::future::pending().await,
                Err(error) => {
                    tracing::error!(error = %causes(&error), "metadata of tokens not requested, retrying");
                }
            }
            tokio::time::sleep(RETRY).await;
        }
    }

    /// Asks until the lane ends.
    async fn follow(&mut self) -> Result<(), Error> {
        let due = Instant::now() + PAUSES.initial;
        let mut asked = Asked { last: 0, again: 0, fruitless: 0, due, failing: None };
        let mut turn = Turn::new(self.renew_every);
        loop {
            let chain = &self.chain;
            let at_head = |blocks: &Progress| blocks.height > 0 && blocks.height >= chain.borrow().height;
            if self.blocks.wait_for(at_head).await.is_err() {
                return Ok(());
            }
            let head = self.blocks.borrow_and_update().height;
            let (new, again) = self.questions(&mut asked)?;
            let groups = new.chunks(TOGETHER).chain(again.chunks(1));
            let (answered, failure, is_early) = self.ask(head, groups).await?;
            let n = answered.len();
            if n > 0 && self.found.send(Fetched::Tokens(answered)).await.is_err() {
                return Ok(());
            }
            let renewed = if new.is_empty() { self.renewed(head, &mut turn).await? } else { Vec::new() };
            if !renewed.is_empty() && self.found.send(Fetched::Tokens(renewed)).await.is_err() {
                return Ok(());
            }
            match failure {
                Some(error) => asked.log(&error),
                None if n > 0 => asked.failing = None,
                None => {}
            }
            if !again.is_empty() {
                asked.fruitless = if n > 0 { 0 } else { asked.fruitless.saturating_add(1) };
                asked.due = Instant::now() + PAUSES.delay(asked.fruitless);
            }
            if is_early {
                // The state is committed within a fraction of a second.
                asked.due = asked.due.min(Instant::now() + POLL);
            }
            // A node that answers nothing is not asked about all tokens at once.
            if new.is_empty() || n == 0 {
                let next = Instant::now() + POLL;
                let until = if asked.due > Instant::now() { next.min(asked.due) } else { next };
                if let Ok(Err(_)) = tokio::time::timeout_at(until, self.blocks.changed()).await {
                    return Ok(());
                }
            }
        }
    }

    /// The next new questions, and the next ones that are due again.
    fn questions(&self, asked: &mut Asked) -> Result<(Vec<Question>, Vec<Question>), Error> {
        let snapshot = self.finality.store.snapshot()?;
        let first = tokens::open_questions(&*snapshot, 0, 1)?;
        meter::tokens_missing_from(first.first().map_or(0, |(_, first)| first.height));
        let mut again = Vec::new();
        if Instant::now() >= asked.due {
            again = tokens::open_questions(&*snapshot, asked.again, ROUND)?;
            again.retain(|(_, first)| first.number <= asked.last);
            if again.is_empty() && asked.again > 0 {
                again = tokens::open_questions(&*snapshot, 0, ROUND)?;
                again.retain(|(_, first)| first.number <= asked.last);
            }
            asked.again = again.last().map_or(0, |(_, first)| first.number);
        }
        let new = tokens::open_questions(&*snapshot, asked.last, ROUND)?;
        asked.last = new.last().map_or(asked.last, |(_, first)| first.number);
        Ok((new, again))
    }

    /// Asks about the groups in the state of `head`. Returns the replies, the reason of a failure, and whether a state was not
    /// committed yet, which is none.
    async fn ask<'q>(
        &self,
        head: u64,
        groups: impl Iterator<Item = &'q [Question]>,
    ) -> Result<(Vec<Described>, Option<String>, bool), Error> {
        let state = self.state(head)?;
        let requests = groups.map(|group| {
            let request = self.group(&state, group);
            async move { (group, tokio::time::timeout(ANSWER_TIMEOUT, request).await) }
        });
        let requests: Vec<_> = requests.collect();
        let mut replies = futures_util::stream::iter(requests).buffered(REQUESTS);
        let (mut answered, mut failure, mut is_early) = (Vec::new(), None, false);
        while let Some((group, replies)) = replies.next().await {
            let Ok(replies) = replies else {
                failure = Some(format!("no answer about tokens within {ANSWER_TIMEOUT:?}"));
                continue;
            };
            for ((token, first), reply) in group.iter().zip(replies) {
                match reply {
                    Ok(metadata) => {
                        let (number, token) = (first.number, token.clone());
                        answered.push(Described { number, token, metadata, height: head });
                    }
                    Err(error) if error.kind() == Kind::NotYet => is_early = true,
                    Err(error) => failure = Some(error.to_string()),
                }
            }
        }
        Ok((answered, failure, is_early))
    }

    /// What the described tokens of a turn say in the state of `head`, if it is something else than before.
    async fn renewed(&self, head: u64, turn: &mut Turn) -> Result<Vec<Described>, Error> {
        let described = turn.next(&*self.finality.store.snapshot()?)?;
        let (said, _, _) = self.ask(head, described.chunks(1)).await?;
        renewal::changed(&*self.finality.store.snapshot()?, said)
    }

    fn node(&self) -> &Arc<Node> {
        &self.finality.node
    }

    /// The state of `head`, or the reason why a reply could not be final yet.
    fn state(&self, head: u64) -> Result<Result<StateAt, NodeError>, Error> {
        if self.vm == Vm::Evm {
            return Ok(Ok(self.finality.contract_state(head)));
        }
        let probe = self.finality.probe(head)?;
        Ok(self.finality.state(head, probe.as_ref()))
    }

    /// The replies about some tokens, in their order.
    async fn group(
        &self,
        state: &Result<StateAt, NodeError>,
        group: &[Question],
    ) -> Vec<Result<Metadata, NodeError>> {
        let state = match state {
            Ok(state) => state,
            Err(error) => return vec![Err(error.clone()); group.len()],
        };
        match (&**self.node(), self.vm) {
            (Node { evm: Some(evm), .. }, Vm::Evm) => self.contracts(evm, state, group).await,
            (Node { rest: Some(rest), .. }, Vm::Move | Vm::Wasm | Vm::None) => {
                let requests: Vec<_> =
                    group.iter().map(|question| self.by_rest(rest, state, question)).collect();
                futures_util::stream::iter(requests).buffered(REQUESTS).collect().await
            }
            _ => Vec::new(),
        }
    }

    async fn contracts(
        &self,
        evm: &Evm,
        state: &StateAt,
        group: &[Question],
    ) -> Vec<Result<Metadata, NodeError>> {
        let calls: Vec<_> = group.iter().map(|(token, _)| calls(token)).collect();
        let mut replies = call_all(evm, state, &calls.concat()).await.into_iter();
        let mut described = Vec::new();
        for ((token, _), calls) in group.iter().zip(&calls) {
            // All of the token's replies are taken, also those after an error.
            let of_token: Vec<_> = replies.by_ref().take(calls.len()).collect();
            let mut metadata = match of_token.into_iter().collect::<Result<Vec<_>, _>>() {
                Ok(replies) => described_by(token, &replies),
                Err(error) => {
                    described.push(Err(error));
                    continue;
                }
            };
            if let (Token::Erc20(contract), Some(rest)) = (token, &self.node().rest) {
                match or_unknown(rest.denom_of_erc20(*contract).await) {
                    Ok(denom) => metadata.denom = denom,
                    Err(error) => {
                        described.push(Err(error));
                        continue;
                    }
                }
            }
            described.push(Ok(metadata));
        }
        described
    }

    async fn by_rest(
        &self,
        rest: &Rest,
        state: &StateAt,
        (token, first): &Question,
    ) -> Result<Metadata, NodeError> {
        Ok(match token {
            Token::Asset(object) => {
                let address = Account::from(*object).to_hex();
                let resource = |tag: &'static str| {
                    let address = &address;
                    answer_or_refusal(state, move |state| rest.move_resource(address, tag, state))
                };
                let plain = resource("0x1::fungible_asset::Metadata").await?;
                let extra = resource("0x1::fungible_asset::ExtraMetadata").await?;
                let functions = resource("0x1::fungible_asset::DispatchFunctionStore").await?;
                let metadata =
                    plain.and_then(|plain| metadata::fungible_asset(object, &plain, extra.as_deref()));
                let is_derived = functions.is_some_and(|reply| metadata::has_derived_balances(&reply));
                Metadata { is_derived, ..metadata.unwrap_or_default() }
            }
            Token::Cw20(contract) => {
                let contract = &Account::from(*contract).to_bech32(&self.finality.prefix);
                let info = answer_or_refusal(state, |state| {
                    rest.wasm_smart(contract, r#"{"token_info":{}}"#, state)
                });
                info.await?.and_then(|info| metadata::cw20(&info)).unwrap_or_default()
            }
            Token::Collection(object) => {
                let address = &Account::from(*object).to_hex();
                let tag = "0x1::collection::Collection";
                let collection = answer_or_refusal(state, |state| rest.move_resource(address, tag, state));
                collection.await?.and_then(|reply| metadata::collection(&reply)).unwrap_or_default()
            }
            Token::Cw721(contract) => {
                let contract = &Account::from(*contract).to_bech32(&self.finality.prefix);
                let info = answer_or_refusal(state, |state| {
                    rest.wasm_smart(contract, r#"{"contract_info":{}}"#, state)
                });
                info.await?.and_then(|info| metadata::cw721(&info)).unwrap_or_default()
            }
            Token::Denom(denom) => match or_unknown(rest.denom_metadata(denom).await)? {
                Some(reply) => metadata::bank(&reply).unwrap_or_default(),
                None if is_deep(first.height, self.node().tip()) => Metadata::default(),
                // The server may not have got to the block that makes the denom.
                None => return Err(self.not_yet(first.height)),
            },
            Token::Erc20(_) | Token::Erc721(_) | Token::Erc1155(_) => Metadata::default(),
        })
    }

    fn not_yet(&self, height: u64) -> NodeError {
        let message = "the latest state may be of a block before".to_owned();
        let at =
            node::RequestContext { service: "rest", height: Some(height), ..node::RequestContext::default() };
        NodeError::NotYet { at, tip: Some(self.node().tip()), message }
    }
}

/// The calls about a token of an EVM chain.
fn calls(token: &Token) -> Vec<ContractCall> {
    let (contract, data) = match token {
        Token::Erc20(contract) => {
            (contract, vec![abi::name(), abi::symbol(), abi::supports_erc721(), abi::decimals()])
        }
        Token::Erc721(contract) => (contract, vec![abi::name(), abi::symbol(), abi::supports_erc721()]),
        Token::Erc1155(contract) => (contract, vec![abi::name(), abi::symbol()]),
        _ => return Vec::new(),
    };
    data.into_iter().map(|data| ContractCall { to: *contract, data }).collect()
}

/// What the replies to [`calls`] say.
fn described_by(token: &Token, replies: &[Option<Returned>]) -> Metadata {
    let reply = |place: usize| replies.get(place).and_then(Option::as_ref).map(|reply| &*reply.bytes);
    Metadata {
        name: metadata::evm_text(reply(0)),
        symbol: metadata::evm_text(reply(1)),
        is_erc721: reply(2).and_then(abi::read_bool) == Some(true),
        decimals: match token {
            Token::Erc20(_) => metadata::evm_decimals(reply(3)),
            _ => metadata::Said::Nothing,
        },
        denom: None,
        is_derived: false,
    }
}

/// A chain without a query knows nothing by it.
fn or_unknown<T>(reply: Result<Option<T>, NodeError>) -> Result<Option<T>, NodeError> {
    match reply {
        Err(NodeError::MethodMissing { .. }) => Ok(None),
        reply => reply,
    }
}

impl Asked {
    fn log(&mut self, error: &str) {
        if self.failing.get_or_insert_with(Instant::now).elapsed() >= REMINDER {
            self.failing = Some(Instant::now());
            tracing::warn!(error, "names of tokens are missing until the node answers");
        }
    }
}
