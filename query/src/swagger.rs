//! The Swagger document, generated from the list of endpoints.

use web::call::Call;
use web::endpoint::Endpoint;
use web::http_error::HttpError;
use web::reply::Reply;
use web::schema::Schema;

use crate::ENDPOINTS as ALL;
use crate::api::Tag;
use crate::indexer::Indexer;

const TAG: Tag = Tag("App");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] =
    &[TAG.record("/swagger/doc.json", "This document.", &[], &DOCUMENT, swagger)];

static DOCUMENT: Schema = Schema { name: "swagger.Document", doc: "A Swagger 2.0 document.", fields: &[] };

/// The Swagger 2.0 document of the indexer API, without the EVM paths on a chain without EVM.
pub fn document(version: &str, evm: bool) -> serde_json::Value {
    let keep = |path: &str| evm || !(path.contains("/evm-") || path.contains("/richlist/"));
    web::openapi::document(
        "cairn indexer API",
        "Blocks, transactions, NFTs and rich lists of one chain, read-only.",
        version,
        ALL,
        keep,
    )
}

#[expect(clippy::unnecessary_wraps, reason = "handlers have one shape")]
fn swagger(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, HttpError> {
    Ok(Reply::json(document(&indexer.build.version, indexer.is_evm()).to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_in_the_document_and_no_two_objects_share_a_name() {
        let document = document("1", true);
        for endpoint in ALL.iter().copied().flatten() {
            assert!(document["paths"][endpoint.path]["get"].is_object(), "{}", endpoint.path);
        }
        assert_eq!(web::openapi::name_conflicts(ALL), Vec::<&str>::new());
    }

    #[test]
    fn a_chain_without_evm_has_no_evm_paths() {
        let document = document("1", false);
        let paths = document["paths"].as_object().unwrap();
        assert!(
            paths.contains_key("/indexer/tx/v1/txs") && paths.contains_key("/indexer/nft/v1/collections")
        );
        assert!(paths.keys().all(|path| !path.contains("evm") && !path.contains("richlist")));
    }
}
