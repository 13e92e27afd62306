//! The RPCs: each builds the target of its JSON endpoint.
//!
//! Handlers block on disk reads, as on the threads of the JSON server, so the server needs a runtime of its own.

use std::sync::{Arc, OnceLock};

use prost::Message;
use query::Indexer;
use serde::de::DeserializeOwned;
use tonic::{Request, Response, Status};
use web::app::App;
use web::http_error::HttpError;

use crate::status;
use crate::target::Target;
use crate::v1::index_service_server::IndexService;
use crate::v1::{
    CountTxsRequest, CountTxsResponse, GetAverageBlockTimeRequest, GetAverageBlockTimeResponse,
    GetBlockRequest, GetBlockResponse, GetCollectionRequest, GetCollectionResponse, GetEvmTxRequest,
    GetEvmTxResponse, GetStatusRequest, GetStatusResponse, GetTxRequest, GetTxResponse, ListBlocksRequest,
    ListBlocksResponse, ListCollectionsByAccountRequest, ListCollectionsByNameRequest,
    ListCollectionsRequest, ListCollectionsResponse, ListEvmTxsByAccountRequest, ListEvmTxsByHeightRequest,
    ListEvmTxsRequest, ListEvmTxsResponse, ListHoldersRequest, ListHoldersResponse,
    ListInternalTxsByAccountRequest, ListInternalTxsByHashRequest, ListInternalTxsByHeightRequest,
    ListInternalTxsRequest, ListInternalTxsResponse, ListTokenTxsRequest, ListTokensByAccountRequest,
    ListTokensByCollectionRequest, ListTokensResponse, ListTxsByAccountRequest, ListTxsByHeightRequest,
    ListTxsRequest, ListTxsResponse, WatchBlocksRequest, WatchBlocksResponse, WatchEvmTxsRequest,
    WatchEvmTxsResponse, WatchTxsRequest, WatchTxsResponse, watch_blocks_response, watch_evm_txs_response,
    watch_txs_response,
};
use crate::watch::{self, Content, Messages, Stopped};

/// Maximum bytes of a response message, beyond which the status is `RESOURCE_EXHAUSTED`. Most clients accept 4 MiB
/// unless they are configured for more.
pub const MAX_RESPONSE: usize = 64 << 20;

/// The JSON API that the RPCs read; empty until there is a database.
pub type Index = Arc<OnceLock<Arc<App<Indexer>>>>;

/// The readiness check; its error is the reason.
pub(crate) type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

type Answer<T> = Result<Response<T>, Status>;

/// The service over an index.
pub(crate) struct IndexReader {
    index: Index,
    ready: Ready,
    stopped: Stopped,
}

impl IndexReader {
    pub(crate) fn new(index: Index, ready: Ready, stopped: Stopped) -> Self {
        Self { index, ready, stopped }
    }

    fn app(&self) -> Result<&App<Indexer>, Status> {
        self.index.get().map(Arc::as_ref).ok_or_else(|| {
            let reason = (self.ready)().err().unwrap_or_else(|| "starting".to_owned());
            status::of(&HttpError::unavailable(format!("not ready: {reason}")))
        })
    }

    /// The answer to `GET target` as a message.
    fn read<T: DeserializeOwned + Message>(&self, target: Target) -> Answer<T> {
        let target = target.into_text();
        let reply = self.app()?.read(&target).map_err(|error| failed(&target, &error))?;
        let message: T = serde_json::from_slice(&reply.body)
            .map_err(|error| failed(&target, &HttpError::internal(error)))?;
        let bytes = message.encoded_len();
        if bytes > MAX_RESPONSE {
            return Err(Status::resource_exhausted(format!(
                "the response has {bytes} bytes, over {MAX_RESPONSE}; ask for fewer rows (pagination.limit)"
            )));
        }
        Ok(Response::new(message))
    }

    /// The stream of `GET target` as messages, each made by `message` from its cursor and its content.
    fn watch<T: DeserializeOwned + 'static, M: Send + 'static>(
        &self,
        target: Target,
        message: fn(String, Content<T>) -> M,
    ) -> Answer<Messages<M>> {
        let target = target.into_text();
        let events = self.app()?.open(&target).map_err(|error| failed(&target, &error))?;
        Ok(Response::new(watch::messages(events, message, self.stopped.clone())))
    }
}

/// The status of `error`, whose detail is logged.
fn failed(target: &str, error: &HttpError) -> Status {
    if let Some(detail) = error.detail() {
        tracing::error!(target, detail, "request failed");
    }
    status::of(error)
}

#[tonic::async_trait]
impl IndexService for IndexReader {
    async fn get_status(&self, _: Request<GetStatusRequest>) -> Answer<GetStatusResponse> {
        self.read(Target::of("/status"))
    }

    async fn list_blocks(&self, request: Request<ListBlocksRequest>) -> Answer<ListBlocksResponse> {
        self.read(Target::of("/indexer/block/v1/blocks").page(request.into_inner().pagination))
    }

    async fn get_block(&self, request: Request<GetBlockRequest>) -> Answer<GetBlockResponse> {
        self.read(Target::of("/indexer/block/v1/blocks").segment("height", request.into_inner().height)?)
    }

    async fn get_average_block_time(
        &self,
        _: Request<GetAverageBlockTimeRequest>,
    ) -> Answer<GetAverageBlockTimeResponse> {
        self.read(Target::of("/indexer/block/v1/avg_blocktime"))
    }

    async fn list_txs(&self, request: Request<ListTxsRequest>) -> Answer<ListTxsResponse> {
        let ListTxsRequest { pagination, msgs } = request.into_inner();
        self.read(Target::of("/indexer/tx/v1/txs").page(pagination).queries("msgs", &msgs))
    }

    async fn count_txs(&self, _: Request<CountTxsRequest>) -> Answer<CountTxsResponse> {
        self.read(Target::of("/indexer/tx/v1/txs/count"))
    }

    async fn list_txs_by_account(
        &self,
        request: Request<ListTxsByAccountRequest>,
    ) -> Answer<ListTxsResponse> {
        let ListTxsByAccountRequest { account, is_signer, pagination, msgs } = request.into_inner();
        let target = Target::of("/indexer/tx/v1/txs/by_account").segment("account", account)?;
        self.read(target.query("is_signer", is_signer).page(pagination).queries("msgs", &msgs))
    }

    async fn list_txs_by_height(&self, request: Request<ListTxsByHeightRequest>) -> Answer<ListTxsResponse> {
        let ListTxsByHeightRequest { height, pagination, msgs } = request.into_inner();
        let target = Target::of("/indexer/tx/v1/txs/by_height").segment("height", height)?;
        self.read(target.page(pagination).queries("msgs", &msgs))
    }

    async fn get_tx(&self, request: Request<GetTxRequest>) -> Answer<GetTxResponse> {
        self.read(Target::of("/indexer/tx/v1/txs").segment("tx_hash", request.into_inner().tx_hash)?)
    }

    async fn list_evm_txs(&self, request: Request<ListEvmTxsRequest>) -> Answer<ListEvmTxsResponse> {
        self.read(Target::of("/indexer/tx/v1/evm-txs").page(request.into_inner().pagination))
    }

    async fn list_evm_txs_by_account(
        &self,
        request: Request<ListEvmTxsByAccountRequest>,
    ) -> Answer<ListEvmTxsResponse> {
        let ListEvmTxsByAccountRequest { account, is_signer, pagination } = request.into_inner();
        let target = Target::of("/indexer/tx/v1/evm-txs/by_account").segment("account", account)?;
        self.read(target.query("is_signer", is_signer).page(pagination))
    }

    async fn list_evm_txs_by_height(
        &self,
        request: Request<ListEvmTxsByHeightRequest>,
    ) -> Answer<ListEvmTxsResponse> {
        let ListEvmTxsByHeightRequest { height, pagination } = request.into_inner();
        let target = Target::of("/indexer/tx/v1/evm-txs/by_height").segment("height", height)?;
        self.read(target.page(pagination))
    }

    async fn get_evm_tx(&self, request: Request<GetEvmTxRequest>) -> Answer<GetEvmTxResponse> {
        self.read(Target::of("/indexer/tx/v1/evm-txs").segment("tx_hash", request.into_inner().tx_hash)?)
    }

    async fn list_internal_txs(
        &self,
        request: Request<ListInternalTxsRequest>,
    ) -> Answer<ListInternalTxsResponse> {
        self.read(Target::of("/indexer/tx/v1/evm-internal-txs").page(request.into_inner().pagination))
    }

    async fn list_internal_txs_by_account(
        &self,
        request: Request<ListInternalTxsByAccountRequest>,
    ) -> Answer<ListInternalTxsResponse> {
        let ListInternalTxsByAccountRequest { account, pagination } = request.into_inner();
        let target = Target::of("/indexer/tx/v1/evm-internal-txs/by_account").segment("account", account)?;
        self.read(target.page(pagination))
    }

    async fn list_internal_txs_by_height(
        &self,
        request: Request<ListInternalTxsByHeightRequest>,
    ) -> Answer<ListInternalTxsResponse> {
        let ListInternalTxsByHeightRequest { height, pagination } = request.into_inner();
        let target = Target::of("/indexer/tx/v1/evm-internal-txs/by_height").segment("height", height)?;
        self.read(target.page(pagination))
    }

    async fn list_internal_txs_by_hash(
        &self,
        request: Request<ListInternalTxsByHashRequest>,
    ) -> Answer<ListInternalTxsResponse> {
        let ListInternalTxsByHashRequest { tx_hash, pagination } = request.into_inner();
        let target = Target::of("/indexer/tx/v1/evm-internal-txs").segment("tx_hash", tx_hash)?;
        self.read(target.page(pagination))
    }

    async fn list_collections(
        &self,
        request: Request<ListCollectionsRequest>,
    ) -> Answer<ListCollectionsResponse> {
        self.read(Target::of("/indexer/nft/v1/collections").page(request.into_inner().pagination))
    }

    async fn list_collections_by_account(
        &self,
        request: Request<ListCollectionsByAccountRequest>,
    ) -> Answer<ListCollectionsResponse> {
        let ListCollectionsByAccountRequest { account, pagination } = request.into_inner();
        let target = Target::of("/indexer/nft/v1/collections/by_account").segment("account", account)?;
        self.read(target.page(pagination))
    }

    async fn list_collections_by_name(
        &self,
        request: Request<ListCollectionsByNameRequest>,
    ) -> Answer<ListCollectionsResponse> {
        let ListCollectionsByNameRequest { name, pagination } = request.into_inner();
        let target = Target::of("/indexer/nft/v1/collections/by_name").segment("name", name)?;
        self.read(target.page(pagination))
    }

    async fn get_collection(&self, request: Request<GetCollectionRequest>) -> Answer<GetCollectionResponse> {
        let collection = request.into_inner().collection_addr;
        self.read(Target::of("/indexer/nft/v1/collections").segment("collection_addr", collection)?)
    }

    async fn list_tokens_by_account(
        &self,
        request: Request<ListTokensByAccountRequest>,
    ) -> Answer<ListTokensResponse> {
        let ListTokensByAccountRequest { account, collection_addr, token_id, order_by, pagination } =
            request.into_inner();
        let target = Target::of("/indexer/nft/v1/tokens/by_account").segment("account", account)?;
        let target = target.query("collection_addr", collection_addr).query("token_id", token_id);
        self.read(target.order(order_by)?.page(pagination))
    }

    async fn list_tokens_by_collection(
        &self,
        request: Request<ListTokensByCollectionRequest>,
    ) -> Answer<ListTokensResponse> {
        let ListTokensByCollectionRequest { collection_addr, token_id, order_by, pagination } =
            request.into_inner();
        let target =
            Target::of("/indexer/nft/v1/tokens/by_collection").segment("collection_addr", collection_addr)?;
        self.read(target.query("token_id", token_id).order(order_by)?.page(pagination))
    }

    async fn list_token_txs(&self, request: Request<ListTokenTxsRequest>) -> Answer<ListTxsResponse> {
        let ListTokenTxsRequest { collection_addr, token_id, pagination } = request.into_inner();
        let target = Target::of("/indexer/nft/v1/txs").segment("collection_addr", collection_addr)?;
        self.read(target.segment("token_id", token_id)?.page(pagination))
    }

    async fn list_holders(&self, request: Request<ListHoldersRequest>) -> Answer<ListHoldersResponse> {
        let ListHoldersRequest { denom, pagination } = request.into_inner();
        self.read(Target::of("/indexer/richlist/v1").segment("denom", denom)?.page(pagination))
    }

    type WatchBlocksStream = Messages<WatchBlocksResponse>;

    async fn watch_blocks(&self, request: Request<WatchBlocksRequest>) -> Answer<Self::WatchBlocksStream> {
        use watch_blocks_response::Event;
        let target = Target::of("/indexer/stream/v1/blocks");
        self.watch(target.query("last_event_id", request.into_inner().cursor), |cursor, content| {
            let event = match content {
                Content::Start(start) => Event::Start(start),
                Content::Row(block) => Event::Block(block),
                Content::Reorg(reorg) => Event::Reorg(reorg),
            };
            WatchBlocksResponse { cursor, event: Some(event) }
        })
    }

    type WatchTxsStream = Messages<WatchTxsResponse>;

    async fn watch_txs(&self, request: Request<WatchTxsRequest>) -> Answer<Self::WatchTxsStream> {
        use watch_txs_response::Event;
        let WatchTxsRequest { cursor, account, is_signer, msgs } = request.into_inner();
        let target = Target::of("/indexer/stream/v1/txs").query("last_event_id", cursor);
        let target = target.query("account", account).query("is_signer", is_signer);
        self.watch(target.queries("msgs", &msgs), |cursor, content| {
            let event = match content {
                Content::Start(start) => Event::Start(start),
                Content::Row(tx) => Event::Tx(tx),
                Content::Reorg(reorg) => Event::Reorg(reorg),
            };
            WatchTxsResponse { cursor, event: Some(event) }
        })
    }

    type WatchEvmTxsStream = Messages<WatchEvmTxsResponse>;

    async fn watch_evm_txs(&self, request: Request<WatchEvmTxsRequest>) -> Answer<Self::WatchEvmTxsStream> {
        use watch_evm_txs_response::Event;
        let WatchEvmTxsRequest { cursor, account, is_signer } = request.into_inner();
        let target = Target::of("/indexer/stream/v1/evm-txs").query("last_event_id", cursor);
        self.watch(target.query("account", account).query("is_signer", is_signer), |cursor, content| {
            let event = match content {
                Content::Start(start) => Event::Start(start),
                Content::Row(tx) => Event::Tx(tx),
                Content::Reorg(reorg) => Event::Reorg(reorg),
            };
            WatchEvmTxsResponse { cursor, event: Some(event) }
        })
    }
}
