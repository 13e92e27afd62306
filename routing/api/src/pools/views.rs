//! The views that pools are read by.

use node::MoveView;

/// Most entries of a list that the modules return.
pub(super) const PAGE: u8 = 30;

/// A weighted pool of the list: LP token and coins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) id: String,
    pub(super) coins: Vec<String>,
}

/// A page of the weighted pools, from the one after these two coins and LP token.
pub(super) fn pairs(after: Option<[&str; 3]>) -> MoveView {
    let option = |denom: Option<&str>| bcs::to_bytes(&denom).unwrap_or_default();
    let [coin_a, coin_b, lp] = after.map_or([None; 3], |after| after.map(Some)).map(option);
    MoveView { module: "dex", function: "get_all_pairs_by_denom", args: vec![coin_a, coin_b, lp, vec![PAGE]] }
}

/// The state of a weighted pool.
pub(super) fn weighted(pool: &str) -> [MoveView; 2] {
    ["get_pool_info", "get_config"].map(|function| MoveView {
        module: "dex",
        function,
        args: vec![object(pool).unwrap_or_default().to_vec()],
    })
}

/// The first page of the `StableSwap` pools, without their addresses.
pub(super) fn stable_pools() -> MoveView {
    MoveView { module: "stableswap", function: "get_all_pools", args: vec![vec![0], vec![PAGE]] }
}

/// The state of a `StableSwap` pool.
pub(super) fn stable(pool: &str) -> MoveView {
    let args = vec![object(pool).unwrap_or_default().to_vec()];
    MoveView { module: "stableswap", function: "get_pool", args }
}

/// A page of Minitswap's pools, from the one after this voucher.
pub(super) fn minitswap_pools(after: Option<&[u8; 32]>) -> MoveView {
    let after = after.map_or(vec![0], |after| [&[1][..], after].concat());
    let args = vec![after, u64::from(PAGE).to_le_bytes().to_vec()];
    MoveView { module: "minitswap", function: "get_pools_detail_list", args }
}

/// The state of a voucher's pool.
pub(super) fn minitswap(voucher: &[u8; 32]) -> MoveView {
    MoveView { module: "minitswap", function: "get_pools_detail", args: vec![voucher.to_vec()] }
}

/// What all pools of Minitswap share.
pub(super) fn minitswap_module() -> MoveView {
    MoveView { module: "minitswap", function: "get_module_store", args: Vec::new() }
}

/// The address of an LP token.
pub(super) fn object(denom: &str) -> Option<[u8; 32]> {
    address(denom.strip_prefix("move/")?)
}

/// The denomination of an LP token.
pub(super) fn denom(address: [u8; 32]) -> String {
    format!("move/{}", hex::encode(address))
}

/// 32 bytes of a Move address, whose leading zeros may be missing.
pub(super) fn address(text: &str) -> Option<[u8; 32]> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode(format!("{digits:0>64}")).ok()?.try_into().ok()
}
