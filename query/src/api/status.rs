//! Progress of the index.

use schema::index::{self, Index, State};
use web::call::Call;
use web::endpoint::Endpoint;
use web::http_error::HttpError;
use web::reply::Reply;
use web::schema::{Field, Kind, Schema};

use super::{Tag, json_text};
use crate::indexer::{Indexer, View};

const TAG: Tag = Tag("App");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] =
    &[TAG.list("/status", "What is indexed, and how far.", &[], &STATUS, status)];

static STATUS: Schema = Schema {
    name: "status.StatusResponse",
    doc: "What is indexed, and how far.",
    fields: &[
        Field::new("version", Kind::String, "Version of the program."),
        Field::new("commit_hash", Kind::String, "Commit that it was built from."),
        Field::new("chain_id", Kind::String, "The chain."),
        Field::new("height", Kind::Natural, "The last indexed block; 0 before the first."),
        Field::maybe(
            "metadata_missing_from",
            Kind::Natural,
            "The first block of which the name of the proposer, or a name or URI of an NFT, is missing until the node \
             answers; absent if none is.",
        ),
        Field::maybe(
            "internal_tx_height",
            Kind::Natural,
            "The last block with internal transactions indexed; EVM only.",
        ),
        Field::maybe(
            "internal_tx_complete_from",
            Kind::Natural,
            "Internal transactions of some blocks before this one are missing, because the node \
             had pruned the state that traces need; absent if none are.",
        ),
        Field::maybe(
            "internal_tx_untraced",
            Kind::Array(&Kind::Natural),
            "Blocks with transactions that the node could not trace, which have no internal transactions: the first \
             1,000; absent if there are none.",
        ),
        Field::maybe(
            "rich_list_height",
            Kind::Natural,
            "The last block whose transfers the rich list has; 0 until it is complete; EVM only.",
        ),
        Field::maybe(
            "indexes",
            Kind::Array(&Kind::Object(&INDEX)),
            "The optional indexes that are stored; absent if there are none.",
        ),
        Field::maybe("rich_list_off", Kind::String, "Why there is no rich list; absent where there is one."),
    ],
};

static INDEX: Schema = Schema {
    name: "status.OptionalIndex",
    doc: "An optional index. Requests that need it are answered while it has the last indexed block.",
    fields: &[
        Field::new("name", Kind::String, "Its name in the setting `index`."),
        Field::new("from", Kind::Natural, "The first block that it has."),
        Field::new("height", Kind::Natural, "The last block that it has."),
    ],
};

fn status(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(indexer.body(&indexer.status, |view| progress(indexer, view))?))
}

fn progress(indexer: &Indexer, view: &View<'_>) -> Result<String, HttpError> {
    let of_evm = if indexer.is_evm() {
        let (calls, rich) = (view.calls()?, view.rich()?.height);
        let complete_from = match calls.complete_from {
            0 => String::new(),
            from => format!(r#","internal_tx_complete_from":{from}"#),
        };
        let untraced = match &calls.untraced[..] {
            [] => String::new(),
            heights => format!(r#","internal_tx_untraced":{heights:?}"#),
        };
        let off = view.no_rich_list()?.map(|why| format!(r#","rich_list_off":{}"#, json_text(&why)));
        let off = off.unwrap_or_default();
        let height = calls.height;
        format!(r#","internal_tx_height":{height}{complete_from}{untraced},"rich_list_height":{rich}{off}"#)
    } else {
        String::new()
    };
    let height = view.blocks()?.height;
    // A query may wait for a height to come.
    let missing = view.metadata_missing_from()?.filter(|missing| *missing <= height);
    let missing = missing.map(|height| format!(r#","metadata_missing_from":{height}"#)).unwrap_or_default();
    let indexes = indexes(view)?;
    Ok(format!(
        r#"{{"version":{},"commit_hash":{},"chain_id":{},"height":{height}{missing}{of_evm}{indexes}}}"#,
        json_text(&indexer.build.version),
        json_text(&indexer.build.commit),
        json_text(&indexer.identity.chain_id),
    ))
}

/// The member with the optional indexes; empty if none is stored.
fn indexes(view: &View<'_>) -> Result<String, HttpError> {
    let stored = index::stored(view.snapshot()).map_err(HttpError::internal)?;
    let row = |(index, state): &(&Index, State)| {
        format!(r#"{{"name":"{}","from":{},"height":{}}}"#, index.name, state.from, state.height)
    };
    let rows: Vec<String> = stored.iter().map(row).collect();
    Ok(if rows.is_empty() { String::new() } else { format!(r#","indexes":[{}]"#, rows.join(",")) })
}
