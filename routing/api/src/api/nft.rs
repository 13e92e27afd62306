//! Endpoint for the messages that send NFTs, as the wallet widget's page "Send NFT" requests them.

use std::time::{SystemTime, UNIX_EPOCH};

use messages::nft::MAX_TOKENS;
use messages::{NftMsg, NftRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::json;
use super::wire::Free;
use crate::body::{self, Text, TimeoutSeconds};
use crate::errors;
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Post,
    path: "/nft",
    tag: "Nft",
    summary: "The messages that send NFTs to an account of the same chain, or of a chain with an ICS-721 channel to it.",
    params: &[Param::Body(schema::of::<SendNftRequest>())],
    response: schema::of::<SendNftResponse>(),
    handler: Handler::Sync(send),
    cache: MaxAge::LIST,
}];

/// NFTs of one collection, their owner and their receiver.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "nft.SendRequest")]
struct SendNftRequest {
    /// The owner, who signs.
    from_address: Text,
    /// Chain of the tokens.
    from_chain_id: Text,
    /// The receiver.
    to_address: Text,
    /// Chain of the receiver.
    to_chain_id: Text,
    /// Contract of the collection; empty on a Move chain.
    collection_address: Option<String>,
    /// 1 to 30.
    #[schemars(length(min = 1, max = MAX_TOKENS), inner(length(min = 1)))]
    token_ids: Vec<String>,
    /// Addresses of the tokens on a Move chain, for a receiver on it.
    object_addresses: Option<Vec<String>>,
    /// Class of the collection on its chain, for another chain.
    class_id: Option<String>,
    /// Of a class that came from another chain.
    class_trace: Option<ClassTrace>,
    /// Contract that the collection sends to, on a Wasm chain.
    outgoing_proxy: Option<String>,
    /// Only that of `from_address`: a packet that fails returns to its sender.
    l1_recover_address: Option<Text>,
    /// Seconds until the tokens return if they do not arrive, 1 to 86400; 1800.
    timeout: Option<TimeoutSeconds>,
}

#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
struct ClassTrace {
    /// Ports and channels, the latest first.
    path: String,
}

/// Used if the client gives none.
const TIMEOUT_SECONDS: u64 = 1800;

/// Messages of one transaction on the chain of the tokens.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "nft.SendResponse")]
struct SendNftResponse {
    /// Each with its amino name as `type` and its amino JSON as `value`.
    #[schemars(with = "Vec<Free>")]
    msgs: Vec<NftMsg>,
}

fn send(service: &Service, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request: SendNftRequest = body::read(&service.config, call, &[])?;
    // A packet that fails returns to its sender.
    if request.l1_recover_address.as_ref().is_some_and(|address| address.0 != request.from_address.0) {
        return Err(errors::invalid("l1_recover_address", "it must be from_address, to which tokens return"));
    }
    let world = service.world();
    let registry = &*world.registry;
    let chain = |id: &Text| registry.chain(&id.0).ok_or_else(errors::unknown_chain);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(errors::internal)?.as_nanos();
    let seconds = request.timeout.map_or(TIMEOUT_SECONDS, |timeout| timeout.0);
    let timeout = u64::try_from(now + u128::from(seconds) * 1_000_000_000).map_err(errors::internal)?;
    let given = |text: Option<&'_ String>| text.filter(|text| !text.is_empty()).cloned();
    let class_id = given(request.class_id.as_ref());
    let class_path = given(request.class_trace.as_ref().map(|trace| &trace.path));
    let outgoing_proxy = given(request.outgoing_proxy.as_ref());
    let msgs = messages::nft(&NftRequest {
        registry,
        facts: &world.facts,
        from: chain(&request.from_chain_id)?,
        to: chain(&request.to_chain_id)?,
        from_address: &request.from_address.0,
        to_address: &request.to_address.0,
        collection: request.collection_address.as_deref().unwrap_or_default(),
        token_ids: &request.token_ids,
        objects: request.object_addresses.as_deref().unwrap_or_default(),
        class_id: class_id.as_deref(),
        class_path: class_path.as_deref(),
        outgoing_proxy: outgoing_proxy.as_deref(),
        timeout,
    });
    let msgs = msgs.map_err(|error| HttpError::bad_request(error.to_string()))?;
    json(&SendNftResponse { msgs })
}
