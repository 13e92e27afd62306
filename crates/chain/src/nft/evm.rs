//! ERC-721: tokens in the logs of contracts, and the events of its extensions ERC-2309 (consecutive transfers) and
//! ERC-4906 (metadata updates); the event of ERC-7572 about the contract's own metadata, and the upgrade of a proxy
//! (ERC-1967), which may change all metadata.
//!
//! Contracts that are not an ERC-721 can log the same shapes (an ERC-20 that indexes its amounts): query the contract
//! before creating a collection for it. ERC-1155 has other events and never matches.

use alloy::primitives::U256;
use alloy::sol_types::SolEvent as _;
use memchr::memmem::Finder;

use self::logs::{BatchMetadataUpdate, ConsecutiveTransfer, ContractURIUpdated, MetadataUpdate, Upgraded};
use super::{NftEvent, TokenRef, Updated};
use crate::address::Account;
use crate::comet::Event;
use crate::evm::Log;
use crate::evm::log::{self, Transfer, TransferLogs};

mod logs {
    alloy::sol! {
        event ConsecutiveTransfer(uint256 indexed first, uint256 last, address indexed from, address indexed to);
        event MetadataUpdate(uint256 token);
        event BatchMetadataUpdate(uint256 first, uint256 last);
        event ContractURIUpdated();
        event Upgraded(address indexed implementation);
    }
}

const NOBODY: [u8; 20] = [0; 20];

/// Tokens that are read of one consecutive transfer: the most that the published implementations mint (`ERC721A`,
/// OpenZeppelin's `ERC721Consecutive`). A log costs the same gas whatever its range.
pub const CONSECUTIVE_OF_LOG: u64 = 5_000;

/// Tokens that are read of all consecutive transfers of a block.
pub const CONSECUTIVE_OF_BLOCK: u64 = 20_000;

/// The start of a log's member `topics`, as the node writes it.
const TOPICS: &str = r#""topics":[""#;

/// Reads the logs of a block.
pub(super) struct Reader {
    transfers: TransferLogs,
    topics: Finder<'static>,
    /// The first topics of the other events.
    consecutive: String,
    update: String,
    batch: String,
    contract: String,
    upgraded: String,
    /// Tokens of consecutive transfers that may still be read.
    left: u64,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            transfers: TransferLogs::new(),
            topics: Finder::new(TOPICS),
            consecutive: ConsecutiveTransfer::SIGNATURE_HASH.to_string(),
            update: MetadataUpdate::SIGNATURE_HASH.to_string(),
            batch: BatchMetadataUpdate::SIGNATURE_HASH.to_string(),
            contract: ContractURIUpdated::SIGNATURE_HASH.to_string(),
            upgraded: Upgraded::SIGNATURE_HASH.to_string(),
            left: CONSECUTIVE_OF_BLOCK,
        }
    }

    /// The NFT events in an event of type `evm`.
    pub(super) fn events(&mut self, event: &Event<'_>) -> Vec<NftEvent> {
        let mut events = Vec::new();
        for text in log::logs(event) {
            match self.transfers.token(text) {
                Some(log) => events.extend(transferred(&log)),
                None => self.other(text, &mut events),
            }
        }
        events
    }

    fn other(&mut self, text: &str, events: &mut Vec<NftEvent>) {
        let Some(kind) = self.first_topic(text).filter(|kind| self.is_known(kind)) else { return };
        let Ok(log) = serde_json::from_str::<Log<'_>>(text) else { return };
        let Some(contract) = log::bytes::<20>(&log.address) else { return };
        let collection = Account::from(contract);
        if kind == self.consecutive {
            self.consecutive(&log, collection, events);
        } else if let Some(tokens) = self.updated(kind, &log) {
            events.push(NftEvent::Metadata { collection, tokens });
        }
    }

    /// Nearly every log passes through, so the topic is compared before the log is parsed.
    fn first_topic<'t>(&self, text: &'t str) -> Option<&'t str> {
        let start = self.topics.find(text.as_bytes())? + TOPICS.len();
        text.get(start..start + self.update.len())
    }

    fn is_known(&self, kind: &str) -> bool {
        let known = [&self.consecutive, &self.update, &self.batch, &self.contract, &self.upgraded];
        known.into_iter().any(|known| known == kind)
    }

    /// What a log about metadata is about. The standard indexes no argument; some contracts do.
    fn updated(&self, kind: &str, log: &Log<'_>) -> Option<Updated> {
        if kind == self.upgraded {
            return Some(Updated::All);
        }
        // The name is not part of what the event is about, and may change with it.
        if kind == self.contract {
            return Some(Updated::Name);
        }
        let data = hex::decode(log.data.strip_prefix("0x").unwrap_or_default()).ok()?;
        let mut words = Vec::new();
        for topic in log.topics.get(1..)? {
            words.push(U256::from_be_bytes(log::bytes::<32>(topic)?));
        }
        words.extend(data.chunks_exact(32).map(U256::from_be_slice));
        match (kind == self.update, &words[..]) {
            (true, [token]) => Some(Updated::Token(token.to_string())),
            (false, [first, last]) if first == last => Some(Updated::Token(first.to_string())),
            (false, [first, last]) if first < last => Some(Updated::Range(*first, *last)),
            _ => None,
        }
    }

    /// Each token of a consecutive transfer, up to the bounds.
    fn consecutive(&mut self, log: &Log<'_>, collection: Account, events: &mut Vec<NftEvent>) {
        let [_, first, from, to] = &log.topics[..] else { return };
        let Some(last) = log::bytes(&log.data).map(U256::from_be_bytes::<32>) else { return };
        let Some(Transfer { contract, from, to, value }) = log::transfer(&log.address, [from, to, first])
        else {
            return;
        };
        let first = U256::from_be_bytes(value);
        if last < first {
            return;
        }
        let all = (last - first).saturating_add(U256::ONE);
        let read = U256::from(CONSECUTIVE_OF_LOG.min(self.left)).min(all);
        self.left -= read.to::<u64>();
        for offset in 0..read.to::<u64>() {
            let value = (first + U256::from(offset)).to_be_bytes();
            events.extend(transferred(&Transfer { contract, from, to, value }));
        }
        if read < all {
            events.push(NftEvent::Unread { collection, first: first + read, last });
        }
    }
}

fn transferred(log: &Transfer) -> Option<NftEvent> {
    let Transfer { contract, from, to, value } = *log;
    let (collection, to) = (Account::from(contract), (to != NOBODY).then(|| Account::from(to)));
    let token_id = U256::from_be_bytes(value).to_string();
    let id = |token_id| TokenRef::Id { collection, token_id };
    match (from == NOBODY, to) {
        (true, None) => None,
        (true, owner @ Some(_)) => {
            Some(NftEvent::Mint { collection, token_id: Some(token_id), object: None, owner, uri: None })
        }
        (false, Some(to)) => Some(NftEvent::Transfer { token: id(token_id), to }),
        (false, None) => Some(NftEvent::Burn { token: id(token_id) }),
    }
}
