//! The RPCs: each builds the target of its JSON endpoint.
//!
//! Handlers run in the share of their client, as those of the JSON server do; they block on disk reads, so the server
//! needs a runtime of its own.

use std::sync::{Arc, OnceLock};

use http::StatusCode;
use prost::Message;
use query::Indexer;
use serde::de::DeserializeOwned;
use tonic::{Extensions, Request, Response, Status};
use web::app::App;
use web::bodies::Held;
use web::http_error::HttpError;
use web::limits::share::Share;
use web::serve::http2::HeldBytes;

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

/// Maximum bytes of a response, as JSON and as a message, beyond which the status is `RESOURCE_EXHAUSTED`: only a record
/// that is larger than a page is so large. Most clients accept 4 MiB unless they are configured for more.
pub const MAX_RESPONSE: usize = 64 << 20;

/// The JSON API that the RPCs read; empty until there is a database.
pub type Index = Arc<OnceLock<Arc<App<Indexer>>>>;

/// The readiness check; its error is the reason.
pub(crate) type Ready = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

type RpcResult<T> = Result<Response<T>, Status>;

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

    fn app(&self) -> Result<&Arc<App<Indexer>>, Status> {
        self.index.get().ok_or_else(|| {
            let reason = (self.ready)().err().unwrap_or_else(|| "starting".to_owned());
            status::of(&HttpError::unavailable(format!("not ready: {reason}")))
        })
    }

    /// The response to `GET target` as a message, within the share of the client of a request with `extensions`.
    async fn read<T: DeserializeOwned + Message + 'static>(
        &self,
        extensions: &Extensions,
        target: Target,
    ) -> RpcResult<T> {
        let (app, target) = (Arc::clone(self.app()?), target.into_text());
        let share = share(extensions)?;
        let (of, holder) = (target.clone(), share.clone());
        let read = move || message::<T>(&app, &of, &holder);
        let (message, held) = match share.run(read).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(error)) | Err(error) => return Err(failed(&target, &error)),
        };
        let mut response = Response::new(message);
        if let Some(held) = held {
            response.extensions_mut().insert(HeldBytes::new(held));
        }
        Ok(response)
    }

    /// The stream of `GET target` as messages, each made by `message` from its cursor and its content.
    fn watch<T: DeserializeOwned + 'static, M: Send + 'static>(
        &self,
        extensions: &Extensions,
        target: Target,
        message: fn(String, Content<T>) -> M,
    ) -> RpcResult<Messages<M>> {
        let target = target.into_text();
        let events = self.app()?.open(&target).map_err(|error| failed(&target, &error))?;
        Ok(Response::new(watch::messages(events, message, share(extensions)?, self.stopped.clone())))
    }
}

/// The share of a request's client, which the server adds.
fn share(extensions: &Extensions) -> Result<Share, Status> {
    extensions.get::<Share>().cloned().ok_or_else(|| Status::internal("a request without a client"))
}

/// The response to `GET target` as a message, and its counted bytes. Both are bounded before they are made: a message and
/// its encoding are about as large as the JSON.
fn message<T: DeserializeOwned>(
    app: &App<Indexer>,
    target: &str,
    share: &Share,
) -> Result<(T, Option<Held>), HttpError> {
    let body = app.read(target)?.body;
    if body.len() > MAX_RESPONSE {
        return Err(HttpError::new(
            StatusCode::TOO_MANY_REQUESTS,
            format!("the response has {} bytes, over {MAX_RESPONSE}: read it as JSON", body.len()),
        ));
    }
    let held = share.hold(2 * body.len())?;
    Ok((serde_json::from_slice(&body).map_err(HttpError::internal)?, held))
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
    async fn get_status(&self, request: Request<GetStatusRequest>) -> RpcResult<GetStatusResponse> {
        let (_, extensions, _) = request.into_parts();
        self.read(&extensions, Target::of("/status")).await
    }

    async fn list_blocks(&self, request: Request<ListBlocksRequest>) -> RpcResult<ListBlocksResponse> {
        let (_, extensions, request) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/block/v1/blocks").page(request.pagination)).await
    }

    async fn get_block(&self, request: Request<GetBlockRequest>) -> RpcResult<GetBlockResponse> {
        let (_, extensions, request) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/block/v1/blocks").segment("height", request.height)?)
            .await
    }

    async fn get_average_block_time(
        &self,
        request: Request<GetAverageBlockTimeRequest>,
    ) -> RpcResult<GetAverageBlockTimeResponse> {
        let (_, extensions, _) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/block/v1/avg_blocktime")).await
    }

    async fn list_txs(&self, request: Request<ListTxsRequest>) -> RpcResult<ListTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListTxsRequest { pagination, msgs } = request;
        self.read(&extensions, Target::of("/indexer/tx/v1/txs").page(pagination).queries("msgs", &msgs)).await
    }

    async fn count_txs(&self, request: Request<CountTxsRequest>) -> RpcResult<CountTxsResponse> {
        let (_, extensions, _) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/tx/v1/txs/count")).await
    }

    async fn list_txs_by_account(
        &self,
        request: Request<ListTxsByAccountRequest>,
    ) -> RpcResult<ListTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListTxsByAccountRequest { account, is_signer, pagination, msgs } = request;
        let target = Target::of("/indexer/tx/v1/txs/by_account").segment("account", account)?;
        self.read(&extensions, target.query("is_signer", is_signer).page(pagination).queries("msgs", &msgs))
            .await
    }

    async fn list_txs_by_height(
        &self,
        request: Request<ListTxsByHeightRequest>,
    ) -> RpcResult<ListTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListTxsByHeightRequest { height, pagination, msgs } = request;
        let target = Target::of("/indexer/tx/v1/txs/by_height").segment("height", height)?;
        self.read(&extensions, target.page(pagination).queries("msgs", &msgs)).await
    }

    async fn get_tx(&self, request: Request<GetTxRequest>) -> RpcResult<GetTxResponse> {
        let (_, extensions, request) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/tx/v1/txs").segment("tx_hash", request.tx_hash)?).await
    }

    async fn list_evm_txs(&self, request: Request<ListEvmTxsRequest>) -> RpcResult<ListEvmTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/tx/v1/evm-txs").page(request.pagination)).await
    }

    async fn list_evm_txs_by_account(
        &self,
        request: Request<ListEvmTxsByAccountRequest>,
    ) -> RpcResult<ListEvmTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListEvmTxsByAccountRequest { account, is_signer, pagination, is_recipient } = request;
        let target = Target::of("/indexer/tx/v1/evm-txs/by_account").segment("account", account)?;
        let target = target.query("is_signer", is_signer).query("is_recipient", is_recipient);
        self.read(&extensions, target.page(pagination)).await
    }

    async fn list_evm_txs_by_height(
        &self,
        request: Request<ListEvmTxsByHeightRequest>,
    ) -> RpcResult<ListEvmTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListEvmTxsByHeightRequest { height, pagination } = request;
        let target = Target::of("/indexer/tx/v1/evm-txs/by_height").segment("height", height)?;
        self.read(&extensions, target.page(pagination)).await
    }

    async fn get_evm_tx(&self, request: Request<GetEvmTxRequest>) -> RpcResult<GetEvmTxResponse> {
        let (_, extensions, request) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/tx/v1/evm-txs").segment("tx_hash", request.tx_hash)?)
            .await
    }

    async fn list_internal_txs(
        &self,
        request: Request<ListInternalTxsRequest>,
    ) -> RpcResult<ListInternalTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/tx/v1/evm-internal-txs").page(request.pagination)).await
    }

    async fn list_internal_txs_by_account(
        &self,
        request: Request<ListInternalTxsByAccountRequest>,
    ) -> RpcResult<ListInternalTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListInternalTxsByAccountRequest { account, pagination } = request;
        let target = Target::of("/indexer/tx/v1/evm-internal-txs/by_account").segment("account", account)?;
        self.read(&extensions, target.page(pagination)).await
    }

    async fn list_internal_txs_by_height(
        &self,
        request: Request<ListInternalTxsByHeightRequest>,
    ) -> RpcResult<ListInternalTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListInternalTxsByHeightRequest { height, pagination } = request;
        let target = Target::of("/indexer/tx/v1/evm-internal-txs/by_height").segment("height", height)?;
        self.read(&extensions, target.page(pagination)).await
    }

    async fn list_internal_txs_by_hash(
        &self,
        request: Request<ListInternalTxsByHashRequest>,
    ) -> RpcResult<ListInternalTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListInternalTxsByHashRequest { tx_hash, pagination } = request;
        let target = Target::of("/indexer/tx/v1/evm-internal-txs").segment("tx_hash", tx_hash)?;
        self.read(&extensions, target.page(pagination)).await
    }

    async fn list_collections(
        &self,
        request: Request<ListCollectionsRequest>,
    ) -> RpcResult<ListCollectionsResponse> {
        let (_, extensions, request) = request.into_parts();
        self.read(&extensions, Target::of("/indexer/nft/v1/collections").page(request.pagination)).await
    }

    async fn list_collections_by_account(
        &self,
        request: Request<ListCollectionsByAccountRequest>,
    ) -> RpcResult<ListCollectionsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListCollectionsByAccountRequest { account, pagination } = request;
        let target = Target::of("/indexer/nft/v1/collections/by_account").segment("account", account)?;
        self.read(&extensions, target.page(pagination)).await
    }

    async fn list_collections_by_name(
        &self,
        request: Request<ListCollectionsByNameRequest>,
    ) -> RpcResult<ListCollectionsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListCollectionsByNameRequest { name, pagination } = request;
        let target = Target::of("/indexer/nft/v1/collections/by_name").segment("name", name)?;
        self.read(&extensions, target.page(pagination)).await
    }

    async fn get_collection(
        &self,
        request: Request<GetCollectionRequest>,
    ) -> RpcResult<GetCollectionResponse> {
        let (_, extensions, request) = request.into_parts();
        let collection = request.collection_addr;
        self.read(
            &extensions,
            Target::of("/indexer/nft/v1/collections").segment("collection_addr", collection)?,
        )
        .await
    }

    async fn list_tokens_by_account(
        &self,
        request: Request<ListTokensByAccountRequest>,
    ) -> RpcResult<ListTokensResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListTokensByAccountRequest { account, collection_addr, token_id, order_by, pagination } = request;
        let target = Target::of("/indexer/nft/v1/tokens/by_account").segment("account", account)?;
        let target = target.query("collection_addr", collection_addr).query("token_id", token_id);
        self.read(&extensions, target.order(order_by)?.page(pagination)).await
    }

    async fn list_tokens_by_collection(
        &self,
        request: Request<ListTokensByCollectionRequest>,
    ) -> RpcResult<ListTokensResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListTokensByCollectionRequest { collection_addr, token_id, order_by, pagination } = request;
        let target =
            Target::of("/indexer/nft/v1/tokens/by_collection").segment("collection_addr", collection_addr)?;
        self.read(&extensions, target.query("token_id", token_id).order(order_by)?.page(pagination)).await
    }

    async fn list_token_txs(&self, request: Request<ListTokenTxsRequest>) -> RpcResult<ListTxsResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListTokenTxsRequest { collection_addr, token_id, pagination } = request;
        let target = Target::of("/indexer/nft/v1/txs").segment("collection_addr", collection_addr)?;
        self.read(&extensions, target.segment("token_id", token_id)?.page(pagination)).await
    }

    async fn list_holders(&self, request: Request<ListHoldersRequest>) -> RpcResult<ListHoldersResponse> {
        let (_, extensions, request) = request.into_parts();
        let ListHoldersRequest { denom, pagination } = request;
        self.read(&extensions, Target::of("/indexer/richlist/v1").segment("denom", denom)?.page(pagination))
            .await
    }

    type WatchBlocksStream = Messages<WatchBlocksResponse>;

    async fn watch_blocks(&self, request: Request<WatchBlocksRequest>) -> RpcResult<Self::WatchBlocksStream> {
        use watch_blocks_response::Event;
        let (_, extensions, request) = request.into_parts();
        let target = Target::of("/indexer/stream/v1/blocks").query("last_event_id", request.cursor);
        self.watch(&extensions, target, |cursor, content| {
            let event = match content {
                Content::Start(start) => Event::Start(start),
                Content::Row(block) => Event::Block(block),
                Content::Reorg(reorg) => Event::Reorg(reorg),
            };
            WatchBlocksResponse { cursor, event: Some(event) }
        })
    }

    type WatchTxsStream = Messages<WatchTxsResponse>;

    async fn watch_txs(&self, request: Request<WatchTxsRequest>) -> RpcResult<Self::WatchTxsStream> {
        use watch_txs_response::Event;
        let (_, extensions, request) = request.into_parts();
        let WatchTxsRequest { cursor, account, is_signer, msgs } = request;
        let target = Target::of("/indexer/stream/v1/txs").query("last_event_id", cursor);
        let target = target.query("account", account).query("is_signer", is_signer);
        self.watch(&extensions, target.queries("msgs", &msgs), |cursor, content| {
            let event = match content {
                Content::Start(start) => Event::Start(start),
                Content::Row(tx) => Event::Tx(tx),
                Content::Reorg(reorg) => Event::Reorg(reorg),
            };
            WatchTxsResponse { cursor, event: Some(event) }
        })
    }

    type WatchEvmTxsStream = Messages<WatchEvmTxsResponse>;

    async fn watch_evm_txs(
        &self,
        request: Request<WatchEvmTxsRequest>,
    ) -> RpcResult<Self::WatchEvmTxsStream> {
        use watch_evm_txs_response::Event;
        let (_, extensions, request) = request.into_parts();
        let WatchEvmTxsRequest { cursor, account, is_signer } = request;
        let target = Target::of("/indexer/stream/v1/evm-txs").query("last_event_id", cursor);
        let target = target.query("account", account).query("is_signer", is_signer);
        self.watch(&extensions, target, |cursor, content| {
            let event = match content {
                Content::Start(start) => Event::Start(start),
                Content::Row(tx) => Event::Tx(tx),
                Content::Reorg(reorg) => Event::Reorg(reorg),
            };
            WatchEvmTxsResponse { cursor, event: Some(event) }
        })
    }
}
