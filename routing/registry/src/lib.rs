//! Chain and asset registry of a routing service.
//!
//! A [`Registry`] is an immutable snapshot loaded from files; a request uses one snapshot until it ends. Current chain
//! state (a closed channel, a stopped bridge) is kept separately in [`Facts`], so it survives a reload of the files.
//!
//! # Invariants
//!
//! * Every reference points into the same registry.
//! * A denomination that can be computed is computed, not read.
//! * The same files give the same snapshot.
//!
//! | module | one job |
//! |---|---|
//! | [`model`] | types: chains, assets, channels, bridges, OFTs |
//! | [`build`] | builder that validates each part |
//! | [`snapshot`] | lookups |
//! | [`wrapper`] | local and remote token of an ERC20Wrapper pair |
//! | [`denom`] | denominations as the chains compute them |
//! | [`facts`] | latest chain state |
//! | [`intermediary`] | accounts of IBC middlewares |
//! | [`mod@load`] | loading of the native format and of two public layouts |
//! | [`mod@check`] | consistency check of a whole registry |
//! | [`problem`] | problems and their location in files |
//!
//! Private modules: `native_format` parses the native format, `import` the public layouts, `last_good` keeps their
//! files, `draft` has the parsed parts
//! before assembly, `assemble` merges them into a registry, `derived` and `voucher_index` have the vouchers that no list has, `chain_rules`
//! the rules of single chains, `fingerprint` hashes the result, `serde_forms` has the serde forms of values.

pub mod build;
pub mod check;
pub mod denom;
pub mod facts;
pub mod intermediary;
pub mod load;
pub mod model;
pub mod problem;
pub mod snapshot;
pub mod wrapper;

mod address;
mod assemble;
mod chain_rules;
mod decimal;
mod derived;
mod draft;
mod files;
mod fingerprint;
mod import;
mod last_good;
mod native_format;
mod serde_forms;
mod voucher_index;

pub use assemble::{FINALIZATION_SECONDS, SUBMISSION_SECONDS};
pub use build::{BadPart, Builder};
pub use check::check;
pub use facts::Facts;
pub use last_good::{BrokenFile, Files};
pub use load::{Loaded, load, load_again, load_text, load_texts, load_with};
pub use model::{
    Asset, AssetRef, Bridge, BridgeKind, BridgeRef, Chain, ChainKind, ChainRef, Channel, ChannelRef, End,
    Endpoints, FeeAsset, Leg, LegKind, NativeCoin, Oft, OftRef, Origin, Terms, Venue,
};
pub use problem::{LoadError, Place, Problem, Severity};
pub use snapshot::{Part, Registry};
pub use wrapper::Pair;
