//! The node's side: heights derived again, with the code that indexes them.

use std::sync::Arc;
use std::time::Duration;

use chain::Vm;
use chain::nft::{NftEvent, TokenRef};
use chain::{Account, abi};
use node::retry::{self, Backoff};
use node::{ContractCall, Kind, Node, StateAt, Status};
use schema::audit::Ground;
use schema::descriptors::Descriptors;
use schema::nft::About;
use schema::payload::Codec;
use store::{Batch, Bounds, Durability, Store, Table as _};
use tokio::sync::Semaphore;

use super::state::TRIES;
use crate::Error;
use crate::derive::{Block, BlockFrames, Rules, WorkerPool};
use crate::nft::client::MetadataClient;
use crate::nft::plan::MetadataFetcher;
use crate::nft::{Answers, QuestionKey, Reply};
use crate::settled::Settled;
use crate::source::{self, BlockSource, CallSource, Proposers, ReceiptFallback, Refresher, Tools};

/// Timeout of the first request; a node that exceeds it is down.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// A node, and everything needed to derive its heights.
pub(super) struct Chain {
    pub(super) node: Arc<Node>,
    pub(super) vm: Vm,
    pub(super) prefix: String,
    /// Whether the index begins after the chain.
    pub(super) begins_late: bool,
    pub(super) codec: Arc<Codec>,
    /// The heights that the node has.
    pub(super) status: Status,
    /// For intermediate rows.
    pub(super) scratch: Arc<dyn Store>,
    client: Arc<MetadataClient>,
    blocks: BlockSource,
    calls: CallSource,
}

/// The chain's content of a height.
pub(super) struct Derived {
    pub(super) block: Block,
    /// The call frames, if the database has those of the height.
    pub(super) frames: Option<BlockFrames>,
}

/// The status of the node, after a check that it serves this chain; an error if it does not answer in time.
pub(super) async fn status(node: &Node, chain_id: &str) -> Result<Status, Error> {
    let asked = retry::until(Backoff::default(), "status", || node.comet.verify_chain(chain_id));
    if let Ok(status) = tokio::time::timeout(ANSWER_TIMEOUT, asked).await {
        return status.map_err(|source| Error::start("status", source));
    }
    // Once more, for the reason.
    let silent =
        |error: node::Error| Error::Silent { seconds: ANSWER_TIMEOUT.as_secs(), reason: error.to_string() };
    node.comet.verify_chain(chain_id).await.map_err(silent)
}

impl Chain {
    pub(super) async fn open(
        node: &Arc<Node>,
        ground: &Ground<'_>,
        store: &Arc<dyn Store>,
        scratch: Arc<dyn Store>,
    ) -> Result<Self, Error> {
        let identity = &ground.identity;
        let status = status(node, &identity.chain_id).await?;
        let vm: Vm = identity.vm.parse().map_err(|_| Error::Setup("the database names no known vm"))?;
        copy_descriptors(ground, &*scratch)?;
        let (registry, descriptors) = source::bootstrap(node, &*scratch, ground.blocks.height).await?;
        let prefix = identity.prefix.clone();
        let rules =
            Rules { vm, prefix: prefix.clone(), registry: Arc::new(registry), descriptors, verified: true };
        let codec = Arc::new(Codec::load(ground.snapshot)?);
        let workers = Arc::new(WorkerPool::new(Arc::clone(&codec), rules));
        let cores = Arc::new(Semaphore::new(std::thread::available_parallelism().map_or(2, usize::from)));
        let tools =
            || Tools { node: Arc::clone(node), workers: Arc::clone(&workers), cores: Arc::clone(&cores) };
        let settled = Settled {
            node: Arc::clone(node),
            store: Arc::clone(store),
            codec: Arc::clone(&codec),
            prefix: prefix.clone(),
            seen: Arc::default(),
        };
        let client = Arc::new(MetadataClient::new(settled, vm));
        let mid_chain = identity.start_height > 1;
        let blocks = BlockSource {
            tools: tools(),
            vm,
            chain_id: identity.chain_id.clone(),
            signed: false,
            proposers: Proposers::new(prefix.clone()),
            refresher: Refresher::new(Arc::clone(&scratch)),
            // The node's receipts are compared as they are.
            receipt_fallback: ReceiptFallback::new(Duration::ZERO),
            fetcher: MetadataFetcher::new(Arc::clone(&client), Arc::clone(&scratch), mid_chain, 0),
            transfer_cache: None,
        };
        let calls = CallSource { tools: tools(), store: Arc::clone(store), pace: None };
        let node = Arc::clone(node);
        Ok(Self { node, vm, prefix, begins_late: mid_chain, codec, status, scratch, client, blocks, calls })
    }

    /// Derives `height`; `None` if the node has pruned data that it needs.
    pub(super) async fn derive(&self, height: u64, with_frames: bool) -> Result<Option<Derived>, Error> {
        let derived = async {
            let block = self.blocks.block(height).await?;
            let frames = if with_frames {
                Some(self.calls.frames(height, block.evm_txs.iter().map(|tx| tx.hash).collect()).await?)
            } else {
                None
            };
            Ok(Derived { block, frames })
        };
        match derived.await {
            Ok(derived) => Ok(Some(derived)),
            Err(Error::ReceiptsPruned { .. }) => Ok(None),
            Err(Error::Node { source, .. }) if is_forgotten(&source) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The NFT metadata of a block; the scratch store has the tables of the block before.
    pub(super) async fn answers(&self, block: &Block) -> Result<Answers, Error> {
        let client = Arc::clone(&self.client);
        let fetcher = MetadataFetcher::new(client, Arc::clone(&self.scratch), self.begins_late, block.height);
        fetcher.ask(block.height, block.probe.as_ref(), &block.nfts).await
    }

    /// The node's answers to `questions` about the NFTs of an indexed height, in their order; `None` if it does not
    /// answer or has pruned the height.
    pub(super) async fn ask(&self, height: u64, questions: &[About]) -> Result<Vec<Option<Reply>>, Error> {
        let Some(asked) = questions.first().and_then(QuestionKey::of) else { return Ok(Vec::new()) };
        let (QuestionKey::Collection(about) | QuestionKey::Object(about) | QuestionKey::Uri(about, _)) =
            asked;
        if let Err(node::Error::Pruned { .. }) = self.probe(height, about).await {
            return Ok(vec![None; questions.len()]);
        }
        let probe = self.client.probe(height)?;
        let mut replies = Vec::new();
        for step in 0..TRIES {
            replies = self.client.ask(height, probe.as_ref(), questions).await;
            if replies.iter().all(|reply| reply.as_ref().err().is_none_or(|e| e.kind() == Kind::Permanent)) {
                break;
            }
            tokio::time::sleep(Backoff::default().delay(step)).await;
        }
        Ok(replies.into_iter().map(Result::ok).collect())
    }

    /// The state of an indexed height for a REST query. A height that the node had when the verification began is not
    /// probed: a wrong answer about the newest one would be a finding that a second run does not confirm.
    pub(super) fn state(&self, height: u64) -> Result<StateAt, node::Error> {
        let settled = &self.client.settled;
        if height <= self.status.latest_height {
            return Ok(StateAt::from(Some(height)));
        }
        // Without a probe the next block must be there.
        let probe = settled.probe(height).unwrap_or_default();
        settled.state(height, probe.as_ref())
    }

    /// The return value of a contract call in the state of an indexed height.
    pub(super) async fn call(&self, to: [u8; 20], data: &[u8], height: u64) -> Result<Vec<u8>, node::Error> {
        let unserved =
            || node::Error::InvalidRequest { at: node::Site::default(), reason: "no JSON-RPC".to_owned() };
        let evm = self.node.evm.as_ref().ok_or_else(unserved)?;
        let calls = [ContractCall { to, data: data.to_vec() }];
        evm.calls(&calls, &self.client.settled.contract_state(height))
            .await
            .pop()
            .unwrap_or_else(|| Err(unserved()))
    }

    /// Whether the node still has the state at `height`: names and URIs may have changed later.
    pub(super) async fn remembers(&self, height: u64, event: &NftEvent) -> bool {
        let about = match event {
            NftEvent::Create { collection, .. }
            | NftEvent::Instantiate { collection }
            | NftEvent::Mint { collection, .. }
            | NftEvent::Transfer { token: TokenRef::Id { collection, .. }, .. }
            | NftEvent::Burn { token: TokenRef::Id { collection, .. } } => *collection,
            NftEvent::Transfer { token: TokenRef::Object(object), .. }
            | NftEvent::Burn { token: TokenRef::Object(object) }
            | NftEvent::SetUri { object, .. } => *object,
            NftEvent::ClassName { .. } => return true,
        };
        !matches!(self.probe(height, about).await, Err(node::Error::Pruned { .. }))
    }

    async fn probe(&self, height: u64, about: Account) -> Result<(), node::Error> {
        match (self.vm, &*self.node) {
            (Vm::Evm, Node { evm: Some(evm), .. }) => match <[u8; 20]>::try_from(about.as_bytes()) {
                Ok(contract) => evm.call(contract, &abi::name(), Some(height)).await.map(|_| ()),
                Err(_) => Ok(()),
            },
            (Vm::Move, Node { rest: Some(rest), .. }) => {
                rest.move_resource(&about.to_hex(), "0x1::object::ObjectCore", Some(height)).await.map(|_| ())
            }
            (Vm::Wasm, Node { rest: Some(rest), .. }) => {
                rest.wasm_contract(&about.to_bech32(&self.prefix), Some(height)).await.map(|_| ())
            }
            _ => Ok(()),
        }
    }
}

fn is_forgotten(error: &node::Error) -> bool {
    use node::Error::{Pruned, ResultsDiscarded, ResultsMissing, Untraceable};
    matches!(error, Pruned { .. } | ResultsMissing { .. } | ResultsDiscarded { .. } | Untraceable { .. })
}

/// The stored descriptors are used if the node serves none.
fn copy_descriptors(ground: &Ground<'_>, scratch: &dyn Store) -> Result<(), Error> {
    let mut batch = Batch::new();
    store::for_each_row(ground.snapshot, Descriptors::SPEC, Bounds::all(), |key, value| {
        batch.put(Descriptors::SPEC, key.to_vec(), value.to_vec());
        Ok::<(), Error>(())
    })?;
    Ok(scratch.commit(batch, Durability::Buffered)?)
}
