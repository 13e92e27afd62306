//! Endpoint `/op-hook`: the messages that a user signs so that the rollup wraps a deposited coin on arrival.

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::json;
use super::pair::Pair;
use super::wire::WireMsg;
use crate::body::{self, DENOM, Text};
use crate::refresh;
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Post,
    path: "/op-hook",
    tag: "Fungible",
    summary: "The messages that the user signs for a route with required_op_hook.",
    params: &[Param::Body(schema::of::<OpHookRequest>())],
    response: schema::of::<OpHookResponse<'_>>(),
    handler: Handler::Async(op_hook),
    cache: MaxAge::LIST,
}];

/// A route with required_op_hook, by its ends.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "fungible.OpHookRequest")]
struct OpHookRequest {
    /// The user's account; also that of the deposit on the rollup.
    source_address: Text,
    /// Chain that the transfer starts on.
    source_asset_chain_id: Text,
    /// Denomination of the source asset.
    #[schemars(regex(pattern = DENOM))]
    source_asset_denom: Text,
    /// Receiver of the converted token.
    dest_address: Text,
    /// The rollup.
    dest_asset_chain_id: Text,
    /// The converted token.
    #[schemars(regex(pattern = DENOM))]
    dest_asset_denom: Text,
}

/// Messages of the transaction to sign on the rollup.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "fungible.OpHookResponse")]
struct OpHookResponse<'a> {
    /// The rollup.
    chain_id: &'a str,
    hook: Vec<WireMsg>,
}

fn op_hook<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        let request: OpHookRequest = body::read(&service.config, call, &[])?;
        let mut world = service.world();
        let source = [request.source_asset_denom, request.source_asset_chain_id];
        let dest = [request.dest_asset_denom, request.dest_asset_chain_id];
        let Pair { source, dest } = Pair::find(&world.registry, source, dest)?;
        world.facts = service.with_contract(&world, dest.asset).await;
        let hook = messages::op_hook(&messages::OpHookRequest {
            registry: &world.registry,
            facts: &world.facts,
            source: source.asset,
            source_address: &request.source_address.0,
            dest: dest.asset,
            dest_address: &request.dest_address.0,
        });
        let built = hook.map_err(|error| HttpError::bad_request(error.to_string()))?;
        let chain = &world.registry[built.chain];
        account_exists(service, chain, &request.source_address.0).await?;
        let hook = built.hook.into_iter().map(WireMsg::from).collect();
        json(&OpHookResponse { chain_id: &chain.id, hook })
    })
}

/// The signature of a hook covers the account's number and sequence, so the account must exist. Only a definite "not
/// found" of the rollup counts as absent.
async fn account_exists(service: &Service, chain: &registry::Chain, address: &str) -> Result<(), HttpError> {
    let Some(account) = chain::Account::parse(address, &chain.bech32_prefix) else { return Ok(()) };
    let address = account.to_bech32(&chain.bech32_prefix);
    let path = format!("/cosmos/auth/v1beta1/accounts/{address}");
    let query = refresh::get(service.clients(), chain, &path);
    match timeout(service.config.query_timeout, query).await {
        Ok(Ok(None)) => Err(HttpError::bad_request(format!(
            "account {address} does not exist on {}; make any deposit without conversion first",
            chain.id
        ))),
        _ => Ok(()),
    }
}
