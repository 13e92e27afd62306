//! Progress of the index.

use schema::index::{self, State};
use web::call::Call;
use web::endpoint::Endpoint;
use web::http_error::HttpError;
use web::reply::Reply;

use super::Tag;
use crate::indexer::{Indexer, View};
use crate::v1::{GetStatusResponse, OptionalIndex};

const TAG: Tag = Tag("App");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] =
    &[TAG.list::<GetStatusResponse>("/status", "What is indexed, and how far.", &[], status)];

fn status(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(indexer.body(&indexer.status, |view| progress(indexer, view))?))
}

fn progress(indexer: &Indexer, view: &View<'_>) -> Result<String, HttpError> {
    let height = view.blocks()?.height;
    let mut status = GetStatusResponse {
        version: indexer.build.version.clone(),
        commit_hash: indexer.build.commit.clone(),
        chain_id: indexer.identity.chain_id.clone(),
        height,
        // A query may wait for a height to come.
        metadata_missing_from: view.metadata_missing_from()?.filter(|missing| *missing <= height),
        ..GetStatusResponse::default()
    };
    if indexer.is_evm() {
        let calls = view.calls()?;
        status.internal_tx_height = Some(calls.height);
        status.internal_tx_complete_from = Some(calls.complete_from).filter(|from| *from != 0);
        status.internal_tx_untraced = calls.untraced;
        status.rich_list_height = Some(view.rich()?.height);
        status.rich_list_off = view.no_rich_list()?;
    }
    for (index, state) in index::stored(view.snapshot()).map_err(HttpError::internal)? {
        let State { from, height, .. } = state;
        status.indexes.push(OptionalIndex { name: index.name.to_owned(), from, height });
    }
    serde_json::to_string(&status).map_err(HttpError::internal)
}
