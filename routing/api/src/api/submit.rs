//! Endpoint that relays a transaction that the client signed, for clients that have no node of their own.
//!
//! # Invariants
//!
//! * The bytes are relayed unchanged, to a node that reports the chain of the request.
//! * An error means that no node has accepted the transaction, unless its message ends with "it may be in a block later".

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use node::Kind;
use proto::tx::{AuthInfo, Message as _, TxBody, TxRaw};
use registry::{Chain, ChainKind};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::timeout;
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::json;
use super::tx::{TrackResponse, now, refusal};
use crate::body::{self, Text};
use crate::errors;
use crate::meter;
use crate::service::Service;

/// Path of the endpoint that relays transactions.
pub const SUBMIT: &str = "/v2/tx/submit";

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[Endpoint {
    method: Method::Post,
    path: SUBMIT,
    tag: "Tx",
    summary: "Relays a signed transaction to a node of its Cosmos chain, unchanged, and registers it as /v2/tx/track does. \
              501 unless the operator has switched it on (route.submit).",
    params: &[Param::Body(schema::of::<SubmitRequest>())],
    response: schema::of::<TrackResponse>(),
    handler: Handler::Async(submit),
    cache: MaxAge::LIST,
}];

/// A signed transaction.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "tx.SubmitRequest")]
struct SubmitRequest {
    /// The chain that it is signed for.
    chain_id: Text,
    /// `cosmos.tx.v1beta1.TxRaw` in base64, at most 512 KiB.
    #[schemars(extend("contentEncoding" = "base64"))]
    tx: Text,
}

/// Bytes of a transaction. CometBFT's own limit is 1 MiB by default; a transfer has less than 20 KiB.
const MAX_TX: usize = 512 << 10;

fn submit<'a>(service: &'a Service, call: &'a Call<'a>) -> BoxFuture<'a, Result<Reply, HttpError>> {
    Box::pin(async {
        if !service.config.submit {
            return Err(errors::unsupported());
        }
        let SubmitRequest { chain_id, tx } = body::read(&service.config, call, &["client_id"])?;
        let world = service.world();
        let chain = world.registry.chain(&chain_id.0).ok_or_else(errors::unknown_chain)?;
        let chain = &world.registry[chain];
        if chain.kind != ChainKind::Cosmos {
            let why = format!("`{}` is an EVM chain, on which the wallet broadcasts", chain.id);
            return Err(errors::invalid("chain_id", &why));
        }
        let bytes = decode(&tx.0)?;
        let outcome = relay(service, chain, &bytes).await;
        meter::count_submission(outcome.is_ok());
        outcome?;
        let hash = chain::hash::to_hex(&chain::hash::tx_hash(&bytes)).to_uppercase();
        let tracked = service.tracker().track_for(call.client(), &chain.id, &hash, now()?);
        // The transaction is on its way: an error would make the user sign another one.
        let explorer_link = tracked.map_or_else(
            |refused| {
                let error = refusal(refused);
                tracing::warn!(chain = chain.id, hash, %error, "a relayed transaction is not tracked");
                String::new()
            },
            |tracked| tracked.explorer_link,
        );
        json(&TrackResponse { tx_hash: hash, explorer_link })
    })
}

/// The bytes of a transaction, if they are one and signed.
fn decode(text: &str) -> Result<Vec<u8>, HttpError> {
    let bytes = STANDARD.decode(text).map_err(|_| HttpError::bad_request("tx must be base64 encoded"))?;
    if bytes.len() > MAX_TX {
        return Err(errors::invalid("tx", &format!("{} bytes, at most {MAX_TX}", bytes.len())));
    }
    let not_a_tx = |error: &dyn std::fmt::Display| {
        errors::invalid("tx", &format!("no cosmos.tx.v1beta1.TxRaw ({error})"))
    };
    let raw = TxRaw::decode(bytes.as_slice()).map_err(|error| not_a_tx(&error))?;
    let body = TxBody::decode(raw.body_bytes.as_slice()).map_err(|error| not_a_tx(&error))?;
    let auth = AuthInfo::decode(raw.auth_info_bytes.as_slice()).map_err(|error| not_a_tx(&error))?;
    if body.messages.is_empty() {
        return Err(errors::invalid("tx", "it has no message"));
    }
    if raw.signatures.is_empty() || raw.signatures.len() != auth.signer_infos.len() {
        let (signatures, signers) = (raw.signatures.len(), auth.signer_infos.len());
        return Err(errors::invalid("tx", &format!("{signatures} signatures of {signers} signers")));
    }
    Ok(bytes)
}

async fn relay(service: &Service, chain: &Chain, bytes: &[u8]) -> Result<(), HttpError> {
    let clients = service.clients().of(chain);
    let comet = clients.comet().map_err(|error| HttpError::unavailable(error.to_string()))?;
    let limit = service.config.query_timeout * 2;
    match timeout(limit, comet.broadcast_tx(&chain.id, bytes)).await {
        Ok(Ok(())) => Ok(()),
        // The log of `CheckTx`, about the client's transaction. Codes of JSON-RPC are negative; their texts are a server's.
        Ok(Err(node::Error::Refused { code, message, .. })) if code > 0 => {
            Err(HttpError::bad_request(message))
        }
        Ok(Err(error)) => {
            tracing::warn!(chain = chain.id, %error, "a transaction was not relayed");
            let may = if error.kind() == Kind::Permanent { "" } else { ", and it may be in a block later" };
            Err(HttpError::unavailable(format!(
                "no node of chain `{}` accepted the transaction{may}",
                chain.id
            )))
        }
        Err(_) => {
            let message = format!(
                "the node of chain `{}` did not answer within {limit:?}, and it may be in a block later",
                chain.id
            );
            Err(HttpError::unavailable(message))
        }
    }
}
