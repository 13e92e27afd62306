//! Claims about contracts: decimals of ERC-20 tokens, and the OFT contracts of LayerZero with their counterparts.

use chain::{Account, U256};
use messages::oft_views::OftView;
use registry::{Asset, Chain, ChainKind, Leg, LegKind, Oft, Origin, Registry};
use tracker::ChainClients;

/// Compares the decimals of an ERC-20 with those of its asset; nothing for other assets.
pub(super) async fn decimals(
    clients: &ChainClients,
    registry: &Registry,
    asset: &Asset,
) -> Result<Option<String>, String> {
    let chain = &registry[asset.chain];
    let Some(token) = erc20(chain, asset) else { return Ok(None) };
    let found = view(clients, chain, token, OftView::Decimals).await?;
    let expected = asset.decimals;
    Ok((found != U256::from(expected))
        .then(|| format!("its ERC-20 has {found} decimals, the registry says {expected}")))
}

/// The ERC-20 of a token that was issued on its EVM chain. A voucher's ERC-20 on a minievm chain has 0 decimals,
/// whatever its origin has.
fn erc20<'a>(chain: &Chain, asset: &'a Asset) -> Option<&'a str> {
    match (chain.kind, &asset.origin) {
        (ChainKind::Evm, _) => Some(asset.denom.as_str()).filter(|denom| denom.starts_with("0x")),
        (ChainKind::Cosmos, Origin::Native) if chain.vm == chain::Vm::Evm => asset.contract.as_deref(),
        _ => None,
    }
}

/// Compares the contract of a leg with the registry; nothing for a Move module, which has other views.
pub(super) async fn leg(
    clients: &ChainClients,
    registry: &Registry,
    oft: &Oft,
    leg: &Leg,
) -> Result<Vec<String>, String> {
    if leg.kind == LegKind::Move {
        return Ok(Vec::new());
    }
    let asset = &registry[leg.asset];
    let chain = &registry[asset.chain];
    let query = async |what| view(clients, chain, &leg.contract, what).await;
    let mut found = Vec::new();
    let shared = query(OftView::SharedDecimals).await?;
    if shared != U256::from(leg.shared_decimals) {
        found.push(format!("it shares {shared} decimals, the registry says {}", leg.shared_decimals));
    }
    let needs_approval = query(OftView::ApprovalRequired).await? == U256::ONE;
    if needs_approval != (leg.kind == LegKind::Adapter) {
        let needs = if needs_approval { "needs an allowance" } else { "needs no allowance" };
        found.push(format!("it {needs}, which the kind of the registry contradicts"));
    }
    let token = query(OftView::Token).await?;
    let expected = match leg.kind {
        LegKind::NativeAdapter => Some(U256::ZERO),
        LegKind::Token => word(&leg.contract),
        LegKind::Adapter | LegKind::Move => asset.contract.as_deref().or(Some(&asset.denom)).and_then(word),
    };
    if expected.is_some_and(|expected| expected != token) {
        found.push(format!("its token is {}, the registry says {}", hex(token), asset.denom));
    }
    for other in oft.legs.iter().filter(|other| other.eid != leg.eid) {
        let peer = query(OftView::Peer(other.eid)).await?;
        if word(&other.contract).is_some_and(|expected| expected != peer) {
            let (chain, contract) = (&registry[registry[other.asset].chain].id, &other.contract);
            found.push(format!("its counterpart on {chain} is {}, the registry says {contract}", hex(peer)));
        }
    }
    Ok(found)
}

async fn view(clients: &ChainClients, chain: &Chain, contract: &str, what: OftView) -> Result<U256, String> {
    let clients = clients.of(chain);
    let evm = clients.evm().map_err(|error| error.to_string())?;
    let to: Option<[u8; 20]> =
        Account::from_hex_literal(contract).and_then(|account| account.as_bytes().try_into().ok());
    let to = to.ok_or_else(|| format!("{contract} is no address of a contract"))?;
    let answer = evm.call(to, &what.calldata(), None).await.map_err(|error| error.to_string())?;
    chain::evm::abi::read_uint(&answer)
        .ok_or_else(|| format!("{contract} is no contract with the view {what:?}"))
}

/// An address as a word of 32 bytes.
fn word(address: &str) -> Option<U256> {
    Some(U256::from_be_slice(Account::from_hex_literal(address)?.as_bytes()))
}

fn hex(word: U256) -> String {
    format!("{word:#x}")
}
