//! Transactions of a token.

use schema::keys::{Owner, Role};
use schema::nft::{TokenObjects, TokenTxs};
use schema::tx::AccountTxs;
use store::Table as _;
use store::key::Text;
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, PAGINATION, Param};
use web::refusal::Refusal;
use web::reply::Reply;

use super::tx;
use crate::array::{Run, Stored};
use crate::cursor::Space;
use crate::indexer::Indexer;
use crate::nft_record;
use crate::params::{self, Paging};

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[Endpoint {
    method: Method::Get,
    path: "/indexer/nft/v1/txs/{collection_addr}/{token_id}",
    tag: "NFT",
    summary: "Transactions that minted, moved or burnt a token; on a Move chain those that involve its object.",
    params: &[
        Param::path("collection_addr", "Bech32 or hex."),
        Param::path("token_id", "Exactly as the token has it, percent-encoded."),
        PAGINATION,
    ],
    response: &tx::TXS,
    handler: Handler::Now(txs),
    cache: Freshness::LIST,
}];

fn txs(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let token = (Owner(params::collection(call, indexer)?), Text::from(call.text("token_id")));
    let paging = Paging::of(call, Space::Txs)?;
    let view = indexer.view()?;
    let snapshot = view.snapshot();
    if !indexer.is_move() {
        let txs = Stored::<TokenTxs>::all(snapshot, token).map_err(Refusal::internal)?;
        return tx::answer(indexer, &view, &paging, &txs);
    }
    let object = store::table::read::<TokenObjects>(snapshot, &token).map_err(Refusal::internal)?;
    let Some(object) = nft_record::address_of(TokenObjects::SPEC, &object.unwrap_or_default())? else {
        return tx::answer(indexer, &view, &paging, &Run { first: 1, len: 0 });
    };
    let txs = Stored::<AccountTxs>::all(snapshot, (Owner(object), Role::Involved));
    tx::answer(indexer, &view, &paging, &txs.map_err(Refusal::internal)?)
}
