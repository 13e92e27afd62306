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
            status::from_error(&HttpError::unavailable(format!("not ready: {reason}")))
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
            Ok(Ok(read)) => read,
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
    status::from_error(error)
}

/// Implements the service: `reads` as `rpc(Request { members }) -> Response = target`, and `watches` as
/// `rpc(Request { members }) -> Stream of Response: its module, its event with a row = target`.
macro_rules! service {
    (
        reads { $($read:ident($request:ident { $($member:ident),* }) -> $response:ident = $target:expr;)* }
        watches { $($watch:ident($watched:ident { $($filter:ident),* }) -> $stream:ident of $message:ident: $events:ident,
            $row:ident = $stream_target:expr;)* }
    ) => {
        #[tonic::async_trait]
        impl IndexService for IndexReader {
            $(async fn $read(&self, request: Request<crate::v1::$request>) -> RpcResult<crate::v1::$response> {
                let (_, extensions, crate::v1::$request { $($member),* }) = request.into_parts();
                self.read(&extensions, $target).await
            })*

            $(type $stream = Messages<crate::v1::$message>;

            async fn $watch(&self, request: Request<crate::v1::$watched>) -> RpcResult<Self::$stream> {
                use crate::v1::$events::Event;
                let (_, extensions, crate::v1::$watched { $($filter),* }) = request.into_parts();
                self.watch(&extensions, $stream_target, |cursor, content| {
                    let event = match content {
                        Content::Start(start) => Event::Start(start),
                        Content::Row(row) => Event::$row(row),
                        Content::Reorg(reorg) => Event::Reorg(reorg),
                    };
                    crate::v1::$message { cursor, event: Some(event) }
                })
            })*
        }
    };
}

service! {
    reads {
        get_status(GetStatusRequest {}) -> GetStatusResponse = Target::new("/status");
        list_blocks(ListBlocksRequest { pagination }) -> ListBlocksResponse =
            Target::new("/indexer/block/v1/blocks").page(pagination);
        get_block(GetBlockRequest { height }) -> GetBlockResponse =
            Target::new("/indexer/block/v1/blocks").segment("height", height)?;
        get_average_block_time(GetAverageBlockTimeRequest {}) -> GetAverageBlockTimeResponse =
            Target::new("/indexer/block/v1/avg_blocktime");
        list_txs(ListTxsRequest { pagination, msgs }) -> ListTxsResponse =
            Target::new("/indexer/tx/v1/txs").page(pagination).queries("msgs", &msgs);
        count_txs(CountTxsRequest {}) -> CountTxsResponse = Target::new("/indexer/tx/v1/txs/count");
        list_txs_by_account(ListTxsByAccountRequest { account, is_signer, pagination, msgs }) -> ListTxsResponse =
            Target::new("/indexer/tx/v1/txs/by_account")
                .segment("account", account)?
                .query("is_signer", is_signer)
                .page(pagination)
                .queries("msgs", &msgs);
        list_txs_by_height(ListTxsByHeightRequest { height, pagination, msgs }) -> ListTxsResponse =
            Target::new("/indexer/tx/v1/txs/by_height")
                .segment("height", height)?
                .page(pagination)
                .queries("msgs", &msgs);
        get_tx(GetTxRequest { tx_hash }) -> GetTxResponse =
            Target::new("/indexer/tx/v1/txs").segment("tx_hash", tx_hash)?;
        list_evm_txs(ListEvmTxsRequest { pagination }) -> ListEvmTxsResponse =
            Target::new("/indexer/tx/v1/evm-txs").page(pagination);
        list_evm_txs_by_account(
            ListEvmTxsByAccountRequest { account, is_signer, pagination, is_recipient }
        ) -> ListEvmTxsResponse =
            Target::new("/indexer/tx/v1/evm-txs/by_account")
                .segment("account", account)?
                .query("is_signer", is_signer)
                .query("is_recipient", is_recipient)
                .page(pagination);
        list_evm_txs_by_height(ListEvmTxsByHeightRequest { height, pagination }) -> ListEvmTxsResponse =
            Target::new("/indexer/tx/v1/evm-txs/by_height").segment("height", height)?.page(pagination);
        get_evm_tx(GetEvmTxRequest { tx_hash }) -> GetEvmTxResponse =
            Target::new("/indexer/tx/v1/evm-txs").segment("tx_hash", tx_hash)?;
        list_internal_txs(ListInternalTxsRequest { pagination }) -> ListInternalTxsResponse =
            Target::new("/indexer/tx/v1/evm-internal-txs").page(pagination);
        list_internal_txs_by_account(
            ListInternalTxsByAccountRequest { account, pagination }
        ) -> ListInternalTxsResponse =
            Target::new("/indexer/tx/v1/evm-internal-txs/by_account").segment("account", account)?.page(pagination);
        list_internal_txs_by_height(ListInternalTxsByHeightRequest { height, pagination }) -> ListInternalTxsResponse =
            Target::new("/indexer/tx/v1/evm-internal-txs/by_height").segment("height", height)?.page(pagination);
        list_internal_txs_by_hash(ListInternalTxsByHashRequest { tx_hash, pagination }) -> ListInternalTxsResponse =
            Target::new("/indexer/tx/v1/evm-internal-txs").segment("tx_hash", tx_hash)?.page(pagination);
        list_collections(ListCollectionsRequest { pagination }) -> ListCollectionsResponse =
            Target::new("/indexer/nft/v1/collections").page(pagination);
        list_collections_by_account(
            ListCollectionsByAccountRequest { account, pagination }
        ) -> ListCollectionsResponse =
            Target::new("/indexer/nft/v1/collections/by_account").segment("account", account)?.page(pagination);
        list_collections_by_name(ListCollectionsByNameRequest { name, pagination }) -> ListCollectionsResponse =
            Target::new("/indexer/nft/v1/collections/by_name").segment("name", name)?.page(pagination);
        get_collection(GetCollectionRequest { collection_addr }) -> GetCollectionResponse =
            Target::new("/indexer/nft/v1/collections").segment("collection_addr", collection_addr)?;
        list_tokens_by_account(
            ListTokensByAccountRequest { account, collection_addr, token_id, order_by, pagination }
        ) -> ListTokensResponse =
            Target::new("/indexer/nft/v1/tokens/by_account")
                .segment("account", account)?
                .query("collection_addr", collection_addr)
                .query("token_id", token_id)
                .order(order_by)?
                .page(pagination);
        list_tokens_by_collection(
            ListTokensByCollectionRequest { collection_addr, token_id, order_by, pagination }
        ) -> ListTokensResponse =
            Target::new("/indexer/nft/v1/tokens/by_collection")
                .segment("collection_addr", collection_addr)?
                .query("token_id", token_id)
                .order(order_by)?
                .page(pagination);
        list_token_txs(ListTokenTxsRequest { collection_addr, token_id, pagination }) -> ListTxsResponse =
            Target::new("/indexer/nft/v1/txs")
                .segment("collection_addr", collection_addr)?
                .segment("token_id", token_id)?
                .page(pagination);
        list_executor_withdrawals(
            ListExecutorWithdrawalsRequest { address, offset, limit, order }
        ) -> ListExecutorWithdrawalsResponse =
            Target::new("/indexer/bridge/v1/withdrawals")
                .segment("address", address)?
                .query("offset", offset)
                .query("limit", limit)
                .query("order", order);
        get_executor_withdrawal(GetExecutorWithdrawalRequest { sequence }) -> BridgeWithdrawal =
            Target::new("/indexer/bridge/v1/withdrawal").segment("sequence", sequence)?;
        get_bridge_info(GetBridgeInfoRequest {}) -> GetBridgeInfoResponse =
            Target::new("/indexer/bridge/v1/info");
        list_bridge_withdrawals(
            ListBridgeWithdrawalsRequest { state, pagination }
        ) -> ListBridgeWithdrawalsResponse =
            Target::new("/indexer/bridge/v1/withdrawals").query("state", state).page(pagination);
        list_bridge_withdrawals_by_account(
            ListBridgeWithdrawalsByAccountRequest { account, pagination }
        ) -> ListBridgeWithdrawalsResponse =
            Target::new("/indexer/bridge/v1/withdrawals/by_account")
                .segment("account", account)?
                .page(pagination);
        list_bridge_deposits(ListBridgeDepositsRequest { bridge_id, pagination }) -> ListBridgeDepositsResponse =
            Target::new("/indexer/bridge/v1/deposits").query("bridge_id", bridge_id).page(pagination);
        list_bridge_deposits_by_account(
            ListBridgeDepositsByAccountRequest { account, pagination }
        ) -> ListBridgeDepositsResponse =
            Target::new("/indexer/bridge/v1/deposits/by_account").segment("account", account)?.page(pagination);
        get_bridge_deposit(GetBridgeDepositRequest { l1_sequence, bridge_id }) -> GetBridgeDepositResponse =
            Target::new("/indexer/bridge/v1/deposits")
                .segment("l1_sequence", l1_sequence)?
                .query("bridge_id", bridge_id);
        list_bridge_outputs(ListBridgeOutputsRequest { bridge_id, pagination }) -> ListBridgeOutputsResponse =
            Target::new("/indexer/bridge/v1/outputs").query("bridge_id", bridge_id).page(pagination);
        get_bridge_output(GetBridgeOutputRequest { output_index, bridge_id }) -> GetBridgeOutputResponse =
            Target::new("/indexer/bridge/v1/outputs")
                .segment("output_index", output_index)?
                .query("bridge_id", bridge_id);
        get_bridge_coverage(GetBridgeCoverageRequest { block }) -> GetBridgeCoverageResponse =
            Target::new("/indexer/bridge/v1/coverage").segment("block", block)?;
        list_bridges(ListBridgesRequest { pagination }) -> ListBridgesResponse =
            Target::new("/indexer/bridge/v1/bridges").page(pagination);
        list_bridge_claims(ListBridgeClaimsRequest { bridge_id, l2_sequence, pagination }) -> ListBridgeClaimsResponse =
            Target::new("/indexer/bridge/v1/claims")
                .query("bridge_id", bridge_id)
                .query("l2_sequence", l2_sequence)
                .page(pagination);
        list_bridge_batches(ListBridgeBatchesRequest { bridge_id, pagination }) -> ListTxsResponse =
            Target::new("/indexer/bridge/v1/batches").query("bridge_id", bridge_id).page(pagination);
        list_holders(ListHoldersRequest { denom, pagination }) -> ListHoldersResponse =
            Target::new("/indexer/richlist/v1").segment("denom", denom)?.page(pagination);
        list_transfers(
            ListTransfersRequest { from_height, to_height, pagination, kind, from_time, to_time }
        ) -> ListTransfersResponse =
            Target::new("/indexer/ledger/v1/transfers")
                .query("from_height", from_height)
                .query("to_height", to_height)
                .query("from_time", from_time)
                .query("to_time", to_time)
                .queries("kind", &kind)
                .page(pagination);
        list_transfers_by_account(
            ListTransfersByAccountRequest {
                account, direction, include_fees, include_zero, token, from_height, to_height, pagination, kind,
                from_time, to_time, counterparty
            }
        ) -> ListTransfersResponse =
            Target::new("/indexer/ledger/v1/transfers/by_account")
                .segment("account", account)?
                .queries("direction", &direction)
                .query("include_fees", include_fees)
                .query("include_zero", include_zero)
                .query("token", token)
                .query("counterparty", counterparty)
                .query("from_height", from_height)
                .query("to_height", to_height)
                .query("from_time", from_time)
                .query("to_time", to_time)
                .queries("kind", &kind)
                .page(pagination);
        list_transfers_by_token(
            ListTransfersByTokenRequest { token, from_height, to_height, pagination, kind, from_time, to_time, token_id }
        ) -> ListTransfersResponse =
            Target::new("/indexer/ledger/v1/transfers/by_token")
                .segment("token", token)?
                .query("token_id", token_id)
                .query("from_height", from_height)
                .query("to_height", to_height)
                .query("from_time", from_time)
                .query("to_time", to_time)
                .queries("kind", &kind)
                .page(pagination);
        list_balances(
            ListBalancesRequest { account, height, token, include_zero, pagination, r#type }
        ) -> ListBalancesResponse =
            Target::new("/indexer/ledger/v1/balances/by_account")
                .segment("account", account)?
                .query("height", height)
                .query("token", token)
                .query("include_zero", include_zero)
                .queries("type", &r#type)
                .page(pagination);
        list_balance_history(
            ListBalanceHistoryRequest { account, token, from_height, to_height, pagination, from_time, to_time }
        ) -> ListBalanceHistoryResponse =
            Target::new("/indexer/ledger/v1/balances/history")
                .segment("account", account)?
                .segment("token", token)?
                .query("from_height", from_height)
                .query("to_height", to_height)
                .query("from_time", from_time)
                .query("to_time", to_time)
                .page(pagination);
        list_token_holders(
            ListTokenHoldersRequest { token, height, order_by, pagination }
        ) -> ListTokenHoldersResponse =
            Target::new("/indexer/ledger/v1/holders")
                .segment("token", token)?
                .query("height", height)
                .query("order_by", order_by)
                .page(pagination);
        list_transfers_by_height(
            ListTransfersByHeightRequest { height, pagination, kind }
        ) -> ListTransfersResponse =
            Target::new("/indexer/ledger/v1/transfers/by_height")
                .segment("height", height)?
                .queries("kind", &kind)
                .page(pagination);
        list_transfers_by_tx(ListTransfersByTxRequest { tx_hash, pagination, kind }) -> ListTransfersResponse =
            Target::new("/indexer/ledger/v1/transfers/by_tx")
                .segment("tx_hash", tx_hash)?
                .queries("kind", &kind)
                .page(pagination);
        list_ledger_tokens(
            ListLedgerTokensRequest { r#type, search, pagination }
        ) -> ListLedgerTokensResponse =
            Target::new("/indexer/ledger/v1/tokens")
                .queries("type", &r#type)
                .query("search", search)
                .page(pagination);
        get_ledger_token(GetLedgerTokenRequest { token, height }) -> GetLedgerTokenResponse =
            Target::new("/indexer/ledger/v1/tokens").segment("token", token)?.query("height", height);
        list_ibc_channels(ListIbcChannelsRequest { pagination }) -> ListIbcChannelsResponse =
            Target::new("/indexer/ibc/v1/channels").page(pagination);
        get_ibc_channel(GetIbcChannelRequest { channel_id, port }) -> GetIbcChannelResponse =
            Target::new("/indexer/ibc/v1/channels").segment("channel_id", channel_id)?.query("port", port);
        list_ibc_packets(
            ListIbcPacketsRequest { channel_id, port, side, state, pagination }
        ) -> ListIbcPacketsResponse =
            Target::new("/indexer/ibc/v1/channels")
                .segment("channel_id", channel_id)?
                .literal("packets")
                .query("port", port)
                .query("side", side)
                .query("state", state)
                .page(pagination);
        get_ibc_packet(
            GetIbcPacketRequest { channel_id, sequence, port, side }
        ) -> GetIbcPacketResponse =
            Target::new("/indexer/ibc/v1/packets")
                .segment("channel_id", channel_id)?
                .segment("sequence", sequence)?
                .query("port", port)
                .query("side", side);
        list_ibc_packets_by_account(
            ListIbcPacketsByAccountRequest { account, state, pagination }
        ) -> ListIbcPacketsResponse =
            Target::new("/indexer/ibc/v1/packets/by_account")
                .segment("account", account)?
                .query("state", state)
                .page(pagination);
        list_ibc_packets_by_tx(ListIbcPacketsByTxRequest { tx_hash, pagination }) -> ListIbcPacketsResponse =
            Target::new("/indexer/ibc/v1/packets/by_tx").segment("tx_hash", tx_hash)?.page(pagination);
    }

    watches {
        watch_blocks(WatchBlocksRequest { cursor }) -> WatchBlocksStream of WatchBlocksResponse: watch_blocks_response,
            Block = Target::new("/indexer/stream/v1/blocks").query("last_event_id", cursor);
        watch_txs(
            WatchTxsRequest { cursor, account, is_signer, msgs }
        ) -> WatchTxsStream of WatchTxsResponse: watch_txs_response, Tx =
            Target::new("/indexer/stream/v1/txs")
                .query("last_event_id", cursor)
                .query("account", account)
                .query("is_signer", is_signer)
                .queries("msgs", &msgs);
        watch_evm_txs(
            WatchEvmTxsRequest { cursor, account, is_signer }
        ) -> WatchEvmTxsStream of WatchEvmTxsResponse: watch_evm_txs_response, Tx =
            Target::new("/indexer/stream/v1/evm-txs")
                .query("last_event_id", cursor)
                .query("account", account)
                .query("is_signer", is_signer);
        watch_transfers(
            WatchTransfersRequest { cursor, account, token, direction, kind, include_fees }
        ) -> WatchTransfersStream of WatchTransfersResponse: watch_transfers_response, Transfer =
            Target::new("/indexer/stream/v1/transfers")
                .query("last_event_id", cursor)
                .query("account", account)
                .query("token", token)
                .queries("direction", &direction)
                .queries("kind", &kind)
                .query("include_fees", include_fees);
    }
}
