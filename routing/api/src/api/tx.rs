//! Endpoints for registered transactions.

use chain::Timestamp;
use serde::Serialize;
use tracker::{Refused, StatusError};
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, Param, Type};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::json;
use crate::body::Body;
use crate::errors;
use crate::service::Service;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Service>] = &[
    Endpoint {
        method: Method::Post,
        path: "/v2/tx/track",
        tag: "Tx",
        summary: "Registers a transaction that was broadcast, once; again is no mistake. 429 with Retry-After where too many \
                  are registered that no node has seen, or too many requests come from one address.",
        params: &[Param::Body(&REQUEST)],
        response: &TRACKED,
        handler: Handler::Now(track),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/v2/tx/status",
        tag: "Tx",
        summary: "How far a registered transaction has come, hop by hop.",
        params: &[
            Param::query("tx_hash", Type::String, "The hash, in any spelling."),
            Param::query("chain_id", Type::String, "The chain that it was broadcast on."),
        ],
        response: &STATUS,
        handler: Handler::Now(status),
        // It is asked for every second.
        cache: Freshness(0),
    },
];

static REQUEST: Schema = Schema {
    name: "tx.TrackRequest",
    doc: "A transaction that was broadcast.",
    fields: &[
        Field::new("tx_hash", Kind::String, "64 hex digits, with or without 0x."),
        Field::new("chain_id", Kind::String, "The chain that it was broadcast on."),
    ],
};

static TRACKED: Schema = Schema {
    name: "tx.TrackResponse",
    doc: "A transaction that is followed.",
    fields: &[
        Field::new("tx_hash", Kind::String, "Upper-case, or lower-case with 0x on an EVM chain."),
        Field::new("explorer_link", Kind::String, "A page about it; empty if none is known."),
    ],
};

static STATUS: Schema = Schema {
    name: "tx.StatusResponse",
    doc: "How far a transaction has come.",
    fields: &[
        Field::new(
            "transfers",
            Kind::Array(&Kind::Free),
            "One for each transfer that it began, with the members below.",
        ),
        Field::new(
            "state",
            Kind::String,
            "STATE_SUBMITTED, STATE_PENDING, STATE_PENDING_ERROR, STATE_COMPLETED_SUCCESS, STATE_COMPLETED_ERROR or \
             STATE_ABANDONED.",
        ),
        Field::new("transfer_sequence", Kind::Array(&Kind::Free), "The hops that are seen, in order."),
        Field::nullable(
            "next_blocking_transfer",
            Kind::Free,
            "`transfer_sequence_index` of the hop that is waited for.",
        ),
        Field::nullable("transfer_asset_release", Kind::Free, "Where the tokens are or will be."),
        Field::nullable("error", Kind::Free, "`type`, `message`, `details`."),
        Field::new(
            "status",
            Kind::String,
            "The older words: STATE_SUBMITTED, STATE_PENDING, STATE_COMPLETED, STATE_FAILED, STATE_ABANDONED.",
        ),
    ],
};

fn track(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    #[derive(Serialize)]
    struct Answer {
        tx_hash: String,
        explorer_link: String,
    }
    let body = Body::read(call, &["tx_hash", "chain_id", "client_id"])?;
    let (hash, chain) = (body.required("tx_hash")?, body.required("chain_id")?);
    let tracked = service.tracker().track_for(call.client(), chain, hash, now()?).map_err(refusal)?;
    json(&Answer { tx_hash: tracked.tx_hash, explorer_link: tracked.explorer_link })
}

fn status(service: &Service, call: &Call<'_>) -> Result<Reply, Refusal> {
    let required = |name| call.first(name).ok_or_else(|| errors::invalid(name, "it is missing"));
    let (hash, chain) = (required("tx_hash")?, required("chain_id")?);
    match service.tracker().status(chain, hash) {
        Ok(Some(ready)) => Ok(Reply::json(ready)),
        Ok(None) => Err(errors::untracked()),
        Err(StatusError::BadHash(bad)) => Err(errors::invalid("tx_hash", &bad.to_string())),
        Err(StatusError::Failed(error)) => Err(errors::internal(error)),
    }
}

fn refusal(refused: Refused) -> Refusal {
    match refused {
        Refused::UnknownChain => errors::unknown_chain(),
        Refused::BadHash(bad) => errors::invalid("tx_hash", &bad.to_string()),
        Refused::TooMany(limit) => errors::too_many_unseen(limit),
        Refused::Failed(error) if error.is_full() => errors::disk_full(error),
        Refused::Failed(error) => errors::internal(error),
    }
}

fn now() -> Result<Timestamp, Refusal> {
    let since =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_err(errors::internal)?;
    i64::try_from(since.as_nanos()).map(Timestamp::from_unix_nanos).map_err(errors::internal)
}
