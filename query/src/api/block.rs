//! Blocks.

use schema::block::{Block, Blocks};
use store::{Message, Table as _};
use web::call::Call;
use web::endpoint::{Endpoint, Param};
use web::http_error::HttpError;
use web::reply::Reply;

use super::{ListRequest, Tag, one};
use crate::array::Run;
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::v1::{GetAverageBlockTimeResponse, GetBlockResponse, ListBlocksResponse};
use crate::{params, record};

/// Number of blocks in the average.
const AVERAGED: u64 = 100;
/// Number of blocks that are read at once.
const AT_ONCE: usize = 128;
const NANOS_PER_SECOND: f64 = 1e9;

const PAGES: Param = Param::Group(&params::pages(Space::Blocks));

const TAG: Tag = Tag("Block");

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListBlocksResponse>(
        "/indexer/block/v1/blocks",
        "All blocks. `total` is the latest height.",
        &[PAGES],
        blocks,
    ),
    TAG.record::<GetBlockResponse>(
        "/indexer/block/v1/blocks/{height}",
        "One block.",
        &[Param::path_of("height", params::HEIGHT, "A height, 1 or more.")],
        block,
    ),
    TAG.list::<GetAverageBlockTimeResponse>(
        "/indexer/block/v1/avg_blocktime",
        "The average time between the newest 100 blocks, in seconds.",
        &[],
        average,
    ),
];

fn blocks(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = ListRequest::new(indexer, call, Space::Blocks)?;
    let (heights, latest) = (heights(indexer, &request.view)?, request.view.blocks()?.height);
    request.respond("blocks", &heights, Some(latest), |out, page| {
        for part in page.chunks(AT_ONCE) {
            for (height, row) in part.iter().zip(record::rows(request.snapshot(), Blocks::SPEC, part)?) {
                let row = row.ok_or_else(|| record::missing(Blocks::SPEC, *height))?;
                let block = store::table::decode_row::<Blocks>(&height.to_be_bytes(), &row);
                let (_, Message(block)) = block.map_err(HttpError::internal)?;
                if out.record(&block.json)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

fn block(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let height = params::height(call)?;
    let found = at(&indexer.view()?, height)?
        .ok_or_else(|| HttpError::not_found(format!("[NOT_FOUND] block not found: height {height}")))?;
    Ok(one("block", &found.json))
}

fn average(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, HttpError> {
    let view = indexer.view()?;
    let heights = heights(indexer, &view)?;
    let gaps = heights.len.min(AVERAGED).saturating_sub(1);
    let mut seconds = 0.0;
    if gaps > 0 {
        let last = heights.first + heights.len - 1;
        let time = |height| -> Result<i64, HttpError> {
            let block = at(&view, height)?;
            Ok(block.ok_or_else(|| HttpError::internal(format!("block {height} is missing")))?.time)
        };
        // Both are exact: a hundred blocks of any chain are less than 2^53 nanoseconds, 104 days, apart, or the
        // rounding is far below the nanosecond.
        #[expect(clippy::cast_precision_loss)]
        let (span, gaps) = ((time(last)? - time(last - gaps)?) as f64, gaps as f64);
        seconds = span / NANOS_PER_SECOND / gaps;
    }
    Ok(Reply::json(format!(r#"{{"avg_block_time":{seconds}}}"#)))
}

/// All indexed heights.
pub(super) fn heights(indexer: &Indexer, view: &View<'_>) -> Result<Run, HttpError> {
    let (first, last) = (indexer.identity.start_height, view.blocks()?.height);
    Ok(Run { first, len: (last + 1).saturating_sub(first) })
}

/// The block at `height`, if it is indexed.
pub(crate) fn at(view: &View<'_>, height: u64) -> Result<Option<Block>, HttpError> {
    let row = store::table::read::<Blocks>(view.snapshot(), &height).map_err(HttpError::internal)?;
    Ok(row.map(|Message(block)| block))
}
