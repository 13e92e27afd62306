//! Tokens of NFT collections.

use schema::keys::AccountKey;
use store::key::Text;
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::reply::Reply;

use super::{ListRequest, Tag};
use crate::array::Array;
use crate::cursor::Space;
use crate::indexer::Indexer;
use crate::nft_record;
use crate::params::{self, TokenOrder};
use crate::token_list::{self, ByHeight, ById, TokenRow};
use crate::v1::ListTokensResponse;

const TOKEN_ID: Param = Param::query("token_id", Type::String, "Only tokens of exactly this id.");

const ORDER_BY: Param = Param::query_or(
    "order_by",
    Type::OneOf(&["token_id", "height"]),
    "token_id",
    "By id as text, or by the height of the last change.",
);

const PAGES: Param = Param::Group(&params::pages(Space::TokensById));

const TAG: Tag = Tag("NFT");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListTokensResponse>(
        "/indexer/nft/v1/tokens/by_account/{account}",
        "Tokens that an account owns.",
        &[
            Param::path_of("account", params::ADDRESS, "Bech32 or hex."),
            Param::query(
                "collection_addr",
                params::ADDRESS,
                "Only tokens of this collection; bech32 or hex.",
            ),
            TOKEN_ID,
            ORDER_BY,
            PAGES,
        ],
        by_account,
    ),
    TAG.list::<ListTokensResponse>(
        "/indexer/nft/v1/tokens/by_collection/{collection_addr}",
        "Tokens of a collection.",
        &[Param::path_of("collection_addr", params::ADDRESS, "Bech32 or hex."), TOKEN_ID, ORDER_BY, PAGES],
        by_collection,
    ),
];

/// The filters in the query string, in addition to the account or collection in the path.
struct Filter {
    collection: Option<AccountKey>,
    id: Option<Text>,
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let owner = AccountKey(params::account(call, indexer)?);
    let collection = params::collection_filter(call, indexer)?.map(AccountKey);
    let filter = Filter { collection, id: call.first("token_id").map(Text::from) };
    match params::token_order(call)? {
        TokenOrder::Id => of_account::<ById>(indexer, call, owner, filter),
        TokenOrder::Height => of_account::<ByHeight>(indexer, call, owner, filter),
    }
}

fn of_account<R: TokenRow>(
    indexer: &Indexer,
    call: &Call<'_>,
    owner: AccountKey,
    filter: Filter,
) -> Result<Reply, HttpError> {
    let request = ListRequest::<R>::new(indexer, call, R::SPACE)?;
    let snapshot = request.snapshot();
    let array = match (filter.collection, filter.id) {
        (None, None) => R::of_account(snapshot, owner),
        (Some(collection), None) => R::held(snapshot, owner, collection),
        (None, Some(id)) => R::named(snapshot, owner, id),
        (Some(collection), Some(id)) => {
            let token =
                token_list::one(snapshot, collection, id, Some(owner)).map_err(HttpError::internal)?;
            return respond(&request, &token_list::at_most(token.as_ref()));
        }
    };
    respond(&request, &*array.map_err(HttpError::internal)?)
}

fn by_collection(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let collection = AccountKey(params::collection(call, indexer)?);
    let id = call.first("token_id").map(Text::from);
    match params::token_order(call)? {
        TokenOrder::Id => of_collection::<ById>(indexer, call, collection, id),
        TokenOrder::Height => of_collection::<ByHeight>(indexer, call, collection, id),
    }
}

fn of_collection<R: TokenRow>(
    indexer: &Indexer,
    call: &Call<'_>,
    collection: AccountKey,
    id: Option<Text>,
) -> Result<Reply, HttpError> {
    let request = ListRequest::<R>::new(indexer, call, R::SPACE)?;
    let snapshot = request.snapshot();
    if let Some(id) = id {
        let token = token_list::one(snapshot, collection, id, None).map_err(HttpError::internal)?;
        return respond(&request, &token_list::at_most(token.as_ref()));
    }
    let array = R::of_collection(snapshot, collection).map_err(HttpError::internal)?;
    respond(&request, &*array)
}

fn respond<R: TokenRow>(
    request: &ListRequest<'_, R>,
    array: &dyn Array<Row = R>,
) -> Result<Reply, HttpError> {
    request.respond("tokens", array, None, |out, rows| {
        nft_record::tokens(out, request.indexer, request.snapshot(), rows)
    })
}
