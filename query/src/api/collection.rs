//! Collections of NFTs.

use chain::nft::normalized_name;
use schema::keys::Owner;
use schema::nft::{Collections, CollectionsByHeight, OwnedCollections};
use serde_json::{Map, Value};
use store::Message;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, PAGINATION, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, PAGINATION_RESPONSE, Schema};

use super::{list, one};
use crate::array::Array;
use crate::array::set::Set;
use crate::cursor::{Row, Space, Start};
use crate::indexer::{Indexer, View};
use crate::nft_record;
use crate::params::{self, Paging};

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    Endpoint {
        method: Method::Get,
        path: "/indexer/nft/v1/collections",
        tag: "NFT",
        summary: "All collections, by height.",
        params: &[PAGINATION],
        response: &COLLECTIONS,
        handler: Handler::Now(all),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/nft/v1/collections/by_account/{account}",
        tag: "NFT",
        summary: "Collections that an account owns a token of, by height.",
        params: &[Param::path("account", "Bech32 or hex."), PAGINATION],
        response: &COLLECTIONS,
        handler: Handler::Now(by_account),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/nft/v1/collections/by_name/{name}",
        tag: "NFT",
        summary: "Collections whose name, here or where they came from, has a part, by height.",
        params: &[
            Param::path("name", "A part of a name; only its letters and digits count, in either case."),
            PAGINATION,
        ],
        response: &COLLECTIONS,
        handler: Handler::Now(by_name),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/nft/v1/collections/{collection_addr}",
        tag: "NFT",
        summary: "One collection.",
        params: &[Param::path("collection_addr", "Bech32 or hex.")],
        response: &COLLECTION_RESPONSE,
        handler: Handler::Now(by_address),
        cache: Freshness::RECORD,
    },
];

static HANDLE: Schema = Schema {
    name: "nft.NftHandle",
    doc: "The tokens of a collection.",
    fields: &[
        Field::new("handle", Kind::String, "Always empty."),
        Field::new("length", Kind::Integer, "How many tokens there are now."),
    ],
};

static DETAIL: Schema = Schema {
    name: "nft.CollectionDetail",
    doc: "What a collection says of itself.",
    fields: &[
        Field::new("creator", Kind::String, "Bech32; empty if unknown."),
        Field::new("name", Kind::String, "Its name on this chain."),
        Field::new(
            "origin_name",
            Kind::String,
            "Its name on the chain that it came from, if it came by IBC.",
        ),
        Field::new("nfts", Kind::Object(&HANDLE), ""),
    ],
};

static COLLECTION: Schema = Schema {
    name: "nft.Collection",
    doc: "A collection.",
    fields: &[
        Field::new("object_addr", Kind::String, "Its address, lower-case hex with 0x."),
        Field::new("collection", Kind::Object(&DETAIL), ""),
        Field::new(
            "height",
            Kind::Integer,
            "The block that made it; on an EVM chain the first that involved the contract.",
        ),
        Field::new("timestamp", Kind::String, "That block's time: RFC 3339, UTC, microseconds."),
    ],
};

static COLLECTIONS: Schema = Schema {
    name: "nft.CollectionsResponse",
    doc: "A page of collections.",
    fields: &[
        Field::new("collections", Kind::Array(&Kind::Object(&COLLECTION)), ""),
        Field::new("pagination", Kind::Object(&PAGINATION_RESPONSE), ""),
    ],
};

static COLLECTION_RESPONSE: Schema = Schema {
    name: "nft.CollectionResponse",
    doc: "One collection.",
    fields: &[Field::new("collection", Kind::Object(&COLLECTION), "")],
};

/// A collection by height, then by address.
type Item = (u64, Owner);

impl Row for Item {
    fn deployed(_: Space, members: &Map<String, Value>) -> Option<Start<Self>> {
        let height = members.get("height").filter(|_| members.len() == 1)?.as_u64()?;
        let first = |height| (height, Owner(chain::Account::ZERO));
        Some(Start::Beyond { from: first(height), to: first(height.saturating_add(1)) })
    }
}

fn all(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let paging = Paging::of(call, Space::Collections)?;
    every(indexer, &indexer.view()?, &paging)
}

fn every(indexer: &Indexer, view: &View<'_>, paging: &Paging<Item>) -> Result<Reply, Refusal> {
    let all = Set::<CollectionsByHeight>::all(view.snapshot(), ()).map_err(Refusal::internal)?;
    answer(indexer, view, paging, &all)
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let owner = Owner(params::account(call, indexer)?);
    let paging = Paging::of(call, Space::Collections)?;
    let view = indexer.view()?;
    let owned = Set::<OwnedCollections>::all(view.snapshot(), owner).map_err(Refusal::internal)?;
    answer(indexer, &view, &paging, &owned)
}

fn by_name(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let part = normalized_name(call.text("name"));
    let paging = Paging::of(call, Space::Collections)?;
    if part.is_empty() {
        return every(indexer, &indexer.view()?, &paging);
    }
    let (view, names) = indexer.view_with_names()?;
    answer(indexer, &view, &paging, &names.containing(&part))
}

fn answer(
    indexer: &Indexer,
    view: &View<'_>,
    paging: &Paging<Item>,
    array: &dyn Array<Row = Item>,
) -> Result<Reply, Refusal> {
    list(indexer, "collections", array, paging, None, |out, items| {
        let addresses: Vec<Owner> = items.iter().map(|(_, address)| *address).collect();
        nft_record::collections(out, indexer, view.snapshot(), &addresses)
    })
}

fn by_address(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let address = Owner(params::collection(call, indexer)?);
    let view = indexer.view()?;
    let row = store::table::read::<Collections>(view.snapshot(), &address).map_err(Refusal::internal)?;
    let unknown = || Refusal::not_found(format!("nft collection not found: {}", address.0.to_hex()));
    let Message(row) = row.ok_or_else(unknown)?;
    one("collection", |out| nft_record::collection(out, indexer, view.snapshot(), address, &row))
}
