//! Collections of NFTs.

use chain::nft::normalized_name;
use schema::keys::AccountKey;
use schema::nft::{Collections, CollectionsByHeight, OwnedCollections};
use serde_json::{Map, Value};
use store::Message;
use web::call::Call;
use web::endpoint::{Endpoint, Param};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::{ListRequest, Tag, one};
use crate::array::Array;
use crate::array::set::{InMemory, Set};
use crate::cursor::{Row, Space, Start};
use crate::indexer::Indexer;
use crate::nft_record;
use crate::params::{self, Paging};
use crate::v1::{GetCollectionResponse, ListCollectionsResponse};

const PAGES: Param = Param::Group(&params::pages(Space::Collections));

const TAG: Tag = Tag("NFT");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListCollectionsResponse>("/indexer/nft/v1/collections", "All collections, by height.", &[PAGES], all),
    TAG.list::<ListCollectionsResponse>(
        "/indexer/nft/v1/collections/by_account/{account}",
        "Collections that an account owns a token of, by height.",
        &[Param::path_of("account", params::ADDRESS, "Bech32 or hex."), PAGES],
        by_account,
    ),
    TAG.list::<ListCollectionsResponse>(
        "/indexer/nft/v1/collections/by_name/{name}",
        "Collections whose name, here or where they came from, has a part, by height.",
        &[Param::path("name", "A part of a name; only its letters and digits count, in either case. Without any, nothing is found."), PAGES],
        by_name,
    ),
    TAG.record::<GetCollectionResponse>(
        "/indexer/nft/v1/collections/{collection_addr}",
        "One collection.",
        &[Param::path_of("collection_addr", params::ADDRESS, "Bech32 or hex.")],
        by_address,
    ),
];

/// A collection by height, then by address.
type Item = (u64, AccountKey);

impl Row for Item {
    fn deployed(_: Space, members: &Map<String, Value>) -> Option<Start<Self>> {
        let height = members.get("height").filter(|_| members.len() == 1)?.as_u64()?;
        let first = |height| (height, AccountKey(chain::Account::ZERO));
        Some(Start::Beyond { from: first(height), to: first(height.saturating_add(1)) })
    }
}

type Request<'a> = ListRequest<'a, Item>;

fn all(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = Request::new(indexer, call, Space::Collections)?;
    let all = Set::<CollectionsByHeight>::all(request.snapshot(), ()).map_err(HttpError::internal)?;
    respond(&request, &all)
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let owner = AccountKey(params::account(call, indexer)?);
    let request = Request::new(indexer, call, Space::Collections)?;
    let owned = Set::<OwnedCollections>::all(request.snapshot(), owner).map_err(HttpError::internal)?;
    respond(&request, &owned)
}

fn by_name(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let part = normalized_name(call.text("name"));
    if part.is_empty() {
        // Every name contains the empty text, but nobody means that by a text without letters and digits.
        return respond(&Request::new(indexer, call, Space::Collections)?, &InMemory(Vec::new()));
    }
    let paging = Paging::read(call, Space::Collections)?;
    lane::serial()?;
    let (view, found) = indexer.collections_named(&part)?;
    respond(&Request { indexer, view, paging }, &InMemory(found.iter().collect()))
}

fn respond(request: &Request<'_>, array: &dyn Array<Row = Item>) -> Result<Reply, HttpError> {
    request.respond("collections", array, None, |out, items| {
        let addresses: Vec<AccountKey> = items.iter().map(|(_, address)| *address).collect();
        nft_record::collections(out, request.indexer, request.snapshot(), &addresses)
    })
}

fn by_address(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let address = AccountKey(params::collection(call, indexer)?);
    let view = indexer.view()?;
    let row = store::table::read::<Collections>(view.snapshot(), &address).map_err(HttpError::internal)?;
    let unknown = || HttpError::not_found(format!("nft collection not found: {}", address.0.to_hex()));
    let Message(row) = row.ok_or_else(unknown)?;
    let mut record = Vec::new();
    nft_record::collection(&mut record, indexer, view.snapshot(), address, &row)?;
    Ok(one("collection", &record))
}
