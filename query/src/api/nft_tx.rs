//! Transactions of a token.

use schema::keys::{AccountKey, Role};
use schema::nft::{TokenObjects, TokenTxs};
use schema::tx::{AccountTxs, Txs};
use store::Table as _;
use store::key::Text;
use web::call::Call;
use web::endpoint::{Endpoint, Param};
use web::http_error::HttpError;
use web::reply::Reply;

use super::{ListRequest, Tag};
use crate::array::{Run, Stored};
use crate::cursor::Space;
use crate::indexer::Indexer;
use crate::v1::ListTxsResponse;
use crate::{nft_record, params, record};

const PAGES: Param = Param::Group(&params::pages(Space::Txs));

const TAG: Tag = Tag("NFT");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[TAG.list::<ListTxsResponse>(
    "/indexer/nft/v1/txs/{collection_addr}/{token_id}",
    "Transactions that minted, moved or burnt a token; on a Move chain those that involve its object.",
    &[
        Param::path_of("collection_addr", params::ADDRESS, "Bech32 or hex."),
        Param::path("token_id", "Exactly as the token has it, percent-encoded."),
        PAGES,
    ],
    txs,
)];

fn txs(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let token = (AccountKey(params::collection(call, indexer)?), Text::from(call.text("token_id")));
    let request = ListRequest::new(indexer, call, Space::Txs)?;
    let snapshot = request.snapshot();
    if !indexer.is_move() {
        let txs = Stored::<TokenTxs>::all(snapshot, token).map_err(HttpError::internal)?;
        return request.records("txs", &txs, record::records::<Txs>);
    }
    let object = store::table::read::<TokenObjects>(snapshot, &token).map_err(HttpError::internal)?;
    let Some(object) = nft_record::address_of(TokenObjects::SPEC, &object.unwrap_or_default())? else {
        return request.records("txs", &Run::EMPTY, record::records::<Txs>);
    };
    let txs = Stored::<AccountTxs>::all(snapshot, (AccountKey(object), Role::Involved));
    request.records("txs", &txs.map_err(HttpError::internal)?, record::records::<Txs>)
}
