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
//! | [`denom`] | denominations across chains, as the chains compute them |
//! | [`facts`] | what the chains said last |

pub mod build;
pub mod denom;
pub mod facts;
pub mod model;
pub mod snapshot;

pub use build::{BadPart, Builder};
pub use facts::Facts;
pub use model::{
    Asset, AssetRef, Bridge, BridgeKind, BridgeRef, Chain, ChainKind, ChainRef, Channel, ChannelRef, End,
    Endpoints, FeeAsset, Leg, LegKind, NativeCoin, Oft, OftRef, Origin, Terms, Venue,
};
pub use snapshot::Registry;
