//! Blocks.

use schema::block::{Block, Blocks};
use store::{Message, Table as _};
use web::call::Call;
use web::endpoint::{Endpoint, Param};
use web::http_error::HttpError;
use web::reply::Reply;
use web::schema::{DECIMAL, Field, Kind, Schema};

use super::{ListRequest, PAGE, Tag, UPPER_HASH, one};
use crate::array::Run;
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
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
    TAG.list(
        "/indexer/block/v1/blocks",
        "All blocks. `total` is the latest height.",
        &[PAGES],
        &BLOCKS,
        blocks,
    ),
    TAG.record(
        "/indexer/block/v1/blocks/{height}",
        "One block.",
        &[Param::path_of("height", params::HEIGHT, "A height, 1 or more.")],
        &BLOCK_RESPONSE,
        block,
    ),
    TAG.list(
        "/indexer/block/v1/avg_blocktime",
        "The average time between the newest 100 blocks, in seconds.",
        &[],
        &AVERAGE,
        average,
    ),
];

pub(super) static COIN: Schema = Schema {
    name: "block.Coin",
    doc: "An amount of a denom.",
    fields: &[
        Field::new("denom", Kind::String, ""),
        Field::new("amount", DECIMAL, "Decimal, in base units."),
    ],
};

static PROPOSER: Schema = Schema {
    name: "block.Proposer",
    doc: "Who proposed a block; empty texts where the chain does not tell.",
    fields: &[
        Field::new("moniker", Kind::String, "The validator's name."),
        Field::new("identity", Kind::String, "Always empty on rollups."),
        Field::new("operator_address", Kind::String, "Bech32, with the prefix of validator operators."),
    ],
};

pub(super) static BLOCK: Schema = Schema {
    name: "block.Block",
    doc: "A block.",
    fields: &[
        Field::new("chain_id", Kind::String, ""),
        Field::new("height", DECIMAL, "Decimal."),
        Field::new("hash", UPPER_HASH, "Upper-case hex."),
        Field::new(
            "block_time",
            DECIMAL,
            "Milliseconds since the block before; 0 for the first indexed block.",
        ),
        Field::new("timestamp", Kind::Time, "RFC 3339, UTC, whole seconds."),
        Field::new("gas_used", DECIMAL, "Decimal, summed over the block's transactions."),
        Field::new("gas_wanted", DECIMAL, "Decimal, summed over the block's transactions."),
        Field::new("tx_count", DECIMAL, "Decimal."),
        Field::new("total_fee", Kind::Array(&Kind::Object(&COIN)), "Declared fees, by denom."),
        Field::new("proposer", Kind::Object(&PROPOSER), ""),
    ],
};

static BLOCKS: Schema = Schema {
    name: "block.BlocksResponse",
    doc: "A page of blocks.",
    fields: &[Field::new("blocks", Kind::Array(&Kind::Object(&BLOCK)), ""), PAGE],
};

static BLOCK_RESPONSE: Schema = Schema {
    name: "block.BlockResponse",
    doc: "One block.",
    fields: &[Field::new("block", Kind::Object(&BLOCK), "")],
};

static AVERAGE: Schema = Schema {
    name: "block.AvgBlockTimeResponse",
    doc: "The average time between blocks.",
    fields: &[Field::new("avg_block_time", Kind::Number, "Seconds; 0 with fewer than two blocks.")],
};

fn blocks(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = ListRequest::of(indexer, call, Space::Blocks)?;
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
pub(super) fn at(view: &View<'_>, height: u64) -> Result<Option<Block>, HttpError> {
    let row = store::table::read::<Blocks>(view.snapshot(), &height).map_err(HttpError::internal)?;
    Ok(row.map(|Message(block)| block))
}
