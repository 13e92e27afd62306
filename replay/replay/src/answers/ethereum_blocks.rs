//! Blocks of an EVM chain by number, tag or hash, if they were recorded.

use serde::Deserialize;

use super::View;
use super::comet_reply::missing;
use super::envelope::Reply;
use super::eth_reply::invalid_params;
use crate::recording::Outcome;

const BLOCK: &str = "eth_getBlockByNumber";

/// The members of a block that are read.
#[derive(Deserialize)]
struct Block {
    number: String,
    hash: String,
}

/// A block number: `0x…`, or a tag as of the time of recording.
pub(super) fn number_of(view: View<'_>, text: &str) -> Result<u64, Reply> {
    let hex = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or_default(), 16);
    match text {
        "earliest" => Ok(0),
        "latest" | "pending" | "safe" | "finalized" => {
            let tag = if text == "pending" { "latest" } else { text };
            let block = block(view, &format!(r#"["{tag}",false]"#));
            let number = block.and_then(|block| hex(&block.number).ok());
            number.ok_or_else(|| missing(view, &format!("{BLOCK} of the tag {tag}")))
        }
        number => hex(number).map_err(|e| invalid_params(&format!("block number {number:?}: {e}"))),
    }
}

/// Whether a block with this hash was recorded, up to `last`; on a rollup, whether it is shown.
pub(super) fn has_block(view: View<'_>, hash: &str, last: u64) -> bool {
    let is = |known: &str| known.eq_ignore_ascii_case(hash);
    if view.recording.is_ethereum() {
        let mut numbers = 0..=last;
        return numbers.any(|number| {
            block(view, &format!(r#"["{number:#x}",false]"#)).is_some_and(|block| is(&block.hash))
        });
    }
    let shown = view.recording.recorded_heights().take_while(|height| height.height <= last);
    let mut blocks = shown.filter_map(|height| height.eth_block);
    blocks.any(|raw| serde_json::from_slice::<Block>(&raw).is_ok_and(|block| is(&block.hash)))
}

fn block(view: View<'_>, params: &str) -> Option<Block> {
    match view.recording.state().eth(BLOCK, params.as_bytes())? {
        Outcome::Result(raw) => serde_json::from_slice(raw).ok(),
        Outcome::Error(_) => None,
    }
}
