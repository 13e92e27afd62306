//! The pages, one module each.

mod account;
mod block;
mod bridge;
mod chart;
mod collection;
mod contract;
mod decoded;
mod evm_half;
mod evm_log;
mod evm_tx;
mod frames;
mod fungible;
mod holders;
mod home;
mod ibc;
pub(crate) mod lookup;
mod messages;
mod movements;
mod overview;
mod packets;
mod planned_route;
mod revert;
mod route;
mod route_end;
mod rows;
mod search;
mod summary;
mod token;
mod tokens;
mod transfer;
mod tx;
mod tx_list;
mod txs;

use web::endpoint::Endpoint;

use crate::explorer::Explorer;
use crate::view::{page, route_form, waiting_page};

/// The pages of an index.
pub(crate) const OF_INDEX: &[Endpoint<Explorer>] = &[
    page::<overview::Overview>(),
    page::<block::BlocksPage>(),
    page::<block::BlockPage>(),
    page::<txs::TxsPage>(),
    page::<tx::TxPage>(),
    page::<evm_tx::EvmTxsPage>(),
    page::<evm_tx::EvmTxPage>(),
    page::<account::AccountPage>(),
    waiting_page::<contract::ContractPage>(),
    page::<collection::CollectionsPage>(),
    page::<collection::CollectionPage>(),
    page::<tokens::TokensPage>(),
    page::<token::TokenPage>(),
    page::<holders::HoldersPage>(),
    page::<ibc::ChannelsPage>(),
    page::<ibc::ChannelPage>(),
    page::<ibc::PacketPage>(),
    page::<bridge::BridgePage>(),
    page::<bridge::WithdrawalPage>(),
    page::<bridge::OutputPage>(),
    page::<bridge::DepositsPage>(),
    page::<bridge::LayerOneBridgePage>(),
    page::<search::SearchPage>(),
];

/// The pages of a routing service.
pub(crate) const OF_ROUTES: &[Endpoint<Explorer>] = &[
    waiting_page::<route::RoutePage>(),
    waiting_page::<transfer::TransferPage>(),
    route_form::<transfer::TransferPage>(),
];

/// The first page where there is no index.
pub(crate) const HOME_OF_ROUTES: &[Endpoint<Explorer>] = &[page::<home::Home>()];
