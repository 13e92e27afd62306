//! The output that covers a block: with it the withdrawals in the block can be claimed.

use http::StatusCode;
use maud::{Markup, html};
use query::v1::{GetBridgeCoverageResponse, GetBridgeInfoResponse};
use web::http_error::HttpError;

use super::{INFO, output_link, verified};
use crate::explorer::Explorer;
use crate::format::{none, whole_time};

/// The output that covers a block, and the requests that say so. Nothing without the index, and on a chain of whose bridge no layer one
/// is asked.
pub(crate) fn coverage(
    explorer: &Explorer,
    height: impl std::fmt::Display,
) -> Result<(Markup, Vec<String>), HttpError> {
    let request = format!("/indexer/bridge/v1/coverage/{height}");
    let covering = match explorer.read::<GetBridgeCoverageResponse>(&request) {
        Err(error) if [StatusCode::NOT_FOUND, StatusCode::SERVICE_UNAVAILABLE].contains(&error.status()) => {
            return Ok((none(), Vec::new()));
        }
        response => response?.output,
    };
    let Some(output) = covering else {
        let info: GetBridgeInfoResponse = explorer.read(INFO)?;
        let shown = if info.l1_known {
            html! { "no output yet" }
        } else {
            none()
        };
        return Ok((shown, if info.l1_known { vec![request, INFO.to_owned()] } else { Vec::new() }));
    };
    let shown = html! {
        "output " (output_link(output.output_index))
        @if let Some(time) = &output.final_at {
            @if output.r#final { ", final since " } @else { ", final at " }
            (whole_time(time))
        }
        @if output.verified == Some(false) { ", " (verified(&output)) }
    };
    Ok((shown, vec![request]))
}
