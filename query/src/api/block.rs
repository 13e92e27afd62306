//! Blocks.

use schema::block::{Block, Blocks};
use store::{Bounds, Message, Order, Table as _};
use web::call::Call;
use web::endpoint::{Endpoint, Freshness, Handler, Method, PAGINATION, Param};
use web::refusal::Refusal;
use web::reply::Reply;
use web::schema::{Field, Kind, PAGINATION_RESPONSE, Schema};

use super::{list, one};
use crate::array::Run;
use crate::cursor::Space;
use crate::indexer::{Indexer, View};
use crate::params::{self, Paging};

/// Number of blocks in the average.
const AVERAGED: u64 = 100;
const NANOS_PER_SECOND: f64 = 1e9;

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    Endpoint {
        method: Method::Get,
        path: "/indexer/block/v1/blocks",
        tag: "Block",
        summary: "All blocks. `total` is the latest height.",
        params: &[PAGINATION],
        response: &BLOCKS,
        handler: Handler::Now(blocks),
        cache: Freshness::LIST,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/block/v1/blocks/{height}",
        tag: "Block",
        summary: "One block.",
        params: &[Param::path("height", "A height, 1 or more.")],
        response: &BLOCK_RESPONSE,
        handler: Handler::Now(block),
        cache: Freshness::RECORD,
    },
    Endpoint {
        method: Method::Get,
        path: "/indexer/block/v1/avg_blocktime",
        tag: "Block",
        summary: "The average time between the newest 100 blocks, in seconds.",
        params: &[],
        response: &AVERAGE,
        handler: Handler::Now(average),
        cache: Freshness::LIST,
    },
];

static COIN: Schema = Schema {
    name: "block.Coin",
    doc: "An amount of a denom.",
    fields: &[
        Field::new("denom", Kind::String, ""),
        Field::new("amount", Kind::String, "Decimal, in base units."),
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

static BLOCK: Schema = Schema {
    name: "block.Block",
    doc: "A block.",
    fields: &[
        Field::new("chain_id", Kind::String, ""),
        Field::new("height", Kind::String, "Decimal."),
        Field::new("hash", Kind::String, "Upper-case hex."),
        Field::new(
            "block_time",
            Kind::String,
            "Milliseconds since the block before; 0 for the first indexed block.",
        ),
        Field::new("timestamp", Kind::String, "RFC 3339, UTC, whole seconds."),
        Field::new("gas_used", Kind::String, "Decimal, summed over the block's transactions."),
        Field::new("gas_wanted", Kind::String, "Decimal, summed over the block's transactions."),
        Field::new("tx_count", Kind::String, "Decimal."),
        Field::new("total_fee", Kind::Array(&Kind::Object(&COIN)), "Declared fees, by denom."),
        Field::new("proposer", Kind::Object(&PROPOSER), ""),
    ],
};

static BLOCKS: Schema = Schema {
    name: "block.BlocksResponse",
    doc: "A page of blocks.",
    fields: &[
        Field::new("blocks", Kind::Array(&Kind::Object(&BLOCK)), ""),
        Field::new("pagination", Kind::Object(&PAGINATION_RESPONSE), ""),
    ],
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

fn blocks(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let paging = Paging::of(call, Space::Blocks)?;
    let view = indexer.view()?;
    let (heights, latest) = (heights(indexer, &view)?, view.blocks()?.height);
    list(indexer, "blocks", &heights, &paging, Some(latest), |out, page| {
        let (Some(first), Some(last)) = (page.first(), page.last()) else { return Ok(()) };
        let (start, end) = (first.min(last).to_be_bytes(), (first.max(last) + 1).to_be_bytes());
        let order = if first <= last { Order::Asc } else { Order::Desc };
        let bounds = Bounds { start: &start, end: Some(&end) };
        let rows =
            view.snapshot().scan(Blocks::SPEC, bounds, order, page.len()).map_err(Refusal::internal)?;
        if rows.len() != page.len() {
            return Err(Refusal::internal(format!("blocks are missing between {first} and {last}")));
        }
        for (i, (key, value)) in rows.iter().enumerate() {
            let (_, Message(block)) =
                store::table::decode_row::<Blocks>(key, value).map_err(Refusal::internal)?;
            if i > 0 {
                out.push(b',');
            }
            out.extend_from_slice(&block.json);
        }
        Ok(())
    })
}

fn block(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, Refusal> {
    let height = params::height(call)?;
    let found = at(&indexer.view()?, height)?
        .ok_or_else(|| Refusal::not_found(format!("[NOT_FOUND] block not found: height {height}")))?;
    one("block", |out| {
        out.extend_from_slice(&found.json);
        Ok(())
    })
}

fn average(indexer: &Indexer, _: &Call<'_>) -> Result<Reply, Refusal> {
    let view = indexer.view()?;
    let heights = heights(indexer, &view)?;
    let gaps = heights.len.min(AVERAGED).saturating_sub(1);
    let mut seconds = 0.0;
    if gaps > 0 {
        let last = heights.first + heights.len - 1;
        let time = |height| -> Result<i64, Refusal> {
            let block = at(&view, height)?;
            Ok(block.ok_or_else(|| Refusal::internal(format!("block {height} is missing")))?.time)
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
pub(super) fn heights(indexer: &Indexer, view: &View<'_>) -> Result<Run, Refusal> {
    let (first, last) = (indexer.identity.start_height, view.blocks()?.height);
    Ok(Run { first, len: (last + 1).saturating_sub(first) })
}

/// The block at `height`, if it is indexed.
pub(super) fn at(view: &View<'_>, height: u64) -> Result<Option<Block>, Refusal> {
    let row = store::table::read::<Blocks>(view.snapshot(), &height).map_err(Refusal::internal)?;
    Ok(row.map(|Message(block)| block))
}
