//! Endpoints for registered transactions.

use chain::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tracker::{Refused, StatusError, Tracked};
use web::call::Call;
use web::endpoint::{Endpoint, Handler, MaxAge, Method, Param, Type};
use web::http_error::HttpError;
use web::openapi::schema;
use web::reply::Reply;

use super::json;
use crate::body::{self, Text};
use crate::errors;
use crate::service::Service;

/// A hash of 32 bytes.
const HASH: Type = Type::Pattern("^(0[xX])?[0-9a-fA-F]{64}$");

/// Path of the endpoint that registers transactions.
pub const TRACK: &str = "/v2/tx/track";

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    Endpoint {
        method: Method::Post,
        path: TRACK,
        tag: "Tx",
        summary: "Registers a transaction that was broadcast, once; again is no mistake. 429 with Retry-After where too many \
                  are registered that no node has seen, or too many requests come from one address.",
        params: &[Param::Body(schema::of::<TrackRequest>())],
        response: schema::of::<TrackResponse>(),
        handler: Handler::Sync(track),
        cache: MaxAge::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/v2/tx/status",
        tag: "Tx",
        summary: "Progress of a registered transaction, hop by hop.",
        params: &[
            Param::required("tx_hash", HASH, "The hash, in any spelling."),
            Param::required("chain_id", Type::String, "The chain that it was broadcast on."),
        ],
        response: schema::of::<tracker::status::Answer>(),
        handler: Handler::Sync(status),
        // Clients repeat the request every second.
        cache: MaxAge(0),
    },
];

/// A transaction that was broadcast.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "tx.TrackRequest")]
struct TrackRequest {
    /// 64 hex digits, with or without 0x.
    #[schemars(regex(pattern = "^(0[xX])?[0-9a-fA-F]{64}$"))]
    tx_hash: Text,
    /// The chain that it was broadcast on.
    chain_id: Text,
}

/// A transaction that is followed.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "tx.TrackResponse")]
pub(super) struct TrackResponse {
    /// Upper-case, or lower-case with 0x on an EVM chain.
    pub(super) tx_hash: String,
    /// A page about it; empty if none is known.
    pub(super) explorer_link: String,
}

fn track(service: &Service, call: &Call<'_>) -> Result<Reply, HttpError> {
    let TrackRequest { tx_hash, chain_id } = body::read(&service.config, call, &["client_id"])?;
    let tracked = service.tracker().track_for(call.client(), &chain_id.0, &tx_hash.0, now()?);
    let Tracked { tx_hash, explorer_link } = tracked.map_err(refusal)?;
    json(&TrackResponse { tx_hash, explorer_link })
}

fn status(service: &Service, call: &Call<'_>) -> Result<Reply, HttpError> {
    let required = |name| call.first(name).ok_or_else(|| errors::missing(name));
    let (hash, chain) = (required("tx_hash")?, required("chain_id")?);
    match service.tracker().status(chain, hash) {
        Ok(Some(ready)) => Ok(Reply::json(ready)),
        Ok(None) => Err(errors::untracked()),
        Err(StatusError::BadHash(bad)) => Err(errors::invalid("tx_hash", &bad.to_string())),
        Err(StatusError::Failed(error)) => Err(errors::internal(error)),
    }
}

pub(super) fn refusal(refused: Refused) -> HttpError {
    match refused {
        Refused::UnknownChain => errors::unknown_chain(),
        Refused::BadHash(bad) => errors::invalid("tx_hash", &bad.to_string()),
        Refused::TooMany(limit) => errors::too_many_unseen(limit),
        Refused::Failed(error) if error.is_full() => errors::disk_full(error),
        Refused::Failed(error) => errors::internal(error),
    }
}

pub(super) fn now() -> Result<Timestamp, HttpError> {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_err(errors::internal)?;
    i64::try_from(since.as_nanos()).map(Timestamp::from_unix_nanos).map_err(errors::internal)
}
