//! What a routing service knows of the world: chains, their assets, and what connects them.
//!
//! A [`Registry`] is an immutable snapshot made from files; whoever answers a request holds one for as long as it takes.
//! What the chains say of themselves at the moment (a channel is closed, a bridge is stopped) stands beside it in
//! [`Facts`], so that reading the files again loses none of it. Must hold: every reference points into the same registry;
//! a denomination that can be computed was computed; the same files give the same snapshot.
//!
//! | module | one job |
//! |---|---|
//! | [`model`] | chains, assets, channels, bridges, OFTs: the words |
//! | [`build`] | puts them together, and refuses what does not fit |
//! | [`snapshot`] | looks them up |
//! | [`wrapper`] | which token of an ERC20Wrapper's pair is which |
//! | [`denom`] | denominations across chains, as the chains compute them |
//! | [`facts`] | what the chains said last |
//! | [`intermediary`] | the accounts that middlewares act as |
//! | [`mod@load`] | reads files: our own form and two public layouts |
//! | [`mod@check`] | what is odd or wrong in a whole |
//! | [`problem`] | what is wrong with them, and where |
//!
//! Within: `own` reads our own form, `import` the public layouts, `draft` is what files say before it is put together,
//! `assemble` puts it together, `fingerprint` names the outcome.

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
mod decimal;
mod draft;
mod files;
mod fingerprint;
mod import;
mod own;
mod serialize;

pub use build::{BadPart, Builder};
pub use check::check;
pub use facts::Facts;
pub use load::{Loaded, load, load_text, load_texts, load_with};
pub use model::{
    Asset, AssetRef, Bridge, BridgeKind, BridgeRef, Chain, ChainKind, ChainRef, Channel, ChannelRef, End,
    Endpoints, FeeAsset, Leg, LegKind, NativeCoin, Oft, OftRef, Origin, Terms, Venue,
};
pub use problem::{LoadError, Place, Problem, Severity};
pub use snapshot::{Part, Registry};
pub use wrapper::Pair;
