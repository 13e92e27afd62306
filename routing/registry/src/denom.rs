//! Denominations as the chains compute them.
//!
//! ICS-20 vouchers: ibc-go `modules/apps/transfer/types`; bridged coins: OPinit `x/ophost/types/denom.go`. Pure text
//! and hashes.

use sha2::{Digest as _, Sha256};
use sha3::Sha3_256;

/// The port of ICS-20 transfers.
pub const TRANSFER_PORT: &str = "transfer";

/// The bank denomination of a full path such as `transfer/channel-0/uinit`: the base if the path has no hop, else
/// `ibc/` and the SHA-256 of the path in upper-case hex.
pub fn of_path(path: &str) -> String {
    if split(path).0.is_empty() {
        return path.to_owned();
    }
    format!("ibc/{}", hex::encode_upper(Sha256::digest(path.as_bytes())))
}

/// The hops of a full path, the latest first, and its base, slashes included.
///
/// A pair is a hop if its second part is `channel-<number>` or the id of a client, and the rest of the path is not
/// empty
/// (ibc-go v10 `ExtractDenomFromPath`).
pub fn split(path: &str) -> (Vec<(&str, &str)>, &str) {
    let (mut hops, mut rest) = (Vec::new(), path);
    while let Some((port, channel, base)) = first_hop(rest) {
        hops.push((port, channel));
        rest = base;
    }
    (hops, rest)
}

fn first_hop(path: &str) -> Option<(&str, &str, &str)> {
    let (port, rest) = path.split_once('/')?;
    let (channel, base) = rest.split_once('/')?;
    let (kind, number) = channel.rsplit_once('-')?;
    let is_number = (1..=20).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    (is_number && (kind == "channel" || is_client_type(kind)) && !base.is_empty())
        .then_some((port, channel, base))
}

/// Whether a text is the type of a client, `08-wasm`. IBC v2 (Eureka) has no channels: its paths name the client.
fn is_client_type(kind: &str) -> bool {
    let (number, name) = kind.split_once('-').unwrap_or_default();
    number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty()
}

/// The path of a voucher's parent on its chain; `None` for a path without hops.
pub fn parent_path(path: &str) -> Option<&str> {
    first_hop(path).map(|(_, _, parent)| parent)
}

/// Prefix of the denominations of ICS-20 vouchers, before the hash.
pub(crate) const VOUCHER: &str = "ibc/";

/// Whether a denomination is an ICS-20 voucher.
pub fn is_voucher(denom: &str) -> bool {
    denom.starts_with(VOUCHER)
}

/// The CW20 contract behind a denomination of the chain registry, `cw20:<address>`.
pub fn cw20(denom: &str) -> Option<&str> {
    denom.strip_prefix("cw20:")
}

/// Whether a port belongs to a contract, a CW20-ICS20 bridge.
pub fn is_contract_port(port: &str) -> bool {
    port.starts_with("wasm.")
}

/// The full path of a token on the chain that receives it.
///
/// `path` is its path on the sending chain, `src` and `dst` are (port, channel) of the two ends. A token that came over
/// the same channel loses that hop; any other gains one.
pub fn received(path: &str, src: (&str, &str), dst: (&str, &str)) -> String {
    match path.strip_prefix(&format!("{}/{}/", src.0, src.1)) {
        Some(home) => home.to_owned(),
        None => format!("{}/{}/{path}", dst.0, dst.1),
    }
}

/// The rollup's coin for `l1_denom` deposited into bridge `bridge_id`.
pub fn bridged(bridge_id: u64, l1_denom: &str) -> String {
    let digest = Sha3_256::new().chain_update(bridge_id.to_be_bytes()).chain_update(l1_denom).finalize();
    format!("l2/{}", hex::encode(digest))
}

/// Address of the metadata object of a denomination on a Move chain (initia `x/move/types/denom.go`): that in `move/…`,
/// else that of the object which 0x1 named so.
pub fn metadata(denom: &str) -> [u8; 32] {
    /// Move's scheme of addresses of named objects.
    const NAMED_OBJECT: u8 = 0xFE;
    let mut address = [0; 32];
    let given = denom.strip_prefix("move/").map(|digits| hex::decode_to_slice(digits, &mut address));
    if given.is_none_or(|given| given.is_err()) {
        let mut one = [0; 32];
        one[31] = 1;
        address = Sha3_256::new()
            .chain_update(one)
            .chain_update(denom)
            .chain_update([NAMED_OBJECT])
            .finalize()
            .into();
    }
    address
}

/// The ERC-20 that a denomination names: `evm/…` on minievm, `0x…` on EVM chains.
pub fn contract(denom: &str) -> Option<String> {
    match denom.strip_prefix("evm/") {
        Some(digits) => Some(format!("0x{digits}")),
        None => denom.starts_with("0x").then(|| denom.to_owned()),
    }
}

/// Whether a text is a valid bank denomination (cosmos-sdk `types/coin.go`): a letter, then 2 to 127 of letters, digits
/// and `/:._-`.
pub fn is_denom(text: &str) -> bool {
    let (first, rest) = text.split_at_checked(1).unwrap_or(("", ""));
    first.bytes().all(|byte| byte.is_ascii_alphabetic())
        && (2..=127).contains(&rest.len())
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/:._-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_objects_have_the_addresses_that_the_l1_gives_them() {
        let of = |denom: &str| hex::encode(metadata(denom));
        assert_eq!(of("uinit"), "8e4733bdabcf7d4afc3d14f0dd46c9bf52fb0fce9e4b996c939e195b8bc891d9");
        let voucher = "ibc/82EB1C694C571F954E68BFD68CFCFCD6123B0EBB69AAA8BAB7A082939B45E802";
        assert_eq!(of(voucher), "972188e32b2ccec557eed98bbea9d42a1a6dc270da9009926365deb7c49db7dd");
        let own = "f80e121ceeaeded7a600422115f11d1fbb037285ef622b7878fc93b1cab47c4c";
        assert_eq!(of(&format!("move/{own}")), own);
        assert_ne!(of("move/?"), of("uinit"));
    }

    #[test]
    fn vouchers_have_the_denominations_that_the_chains_give_them() {
        let vectors = [
            (
                "transfer/channel-3/uusdc",
                "ibc/6490A7EAB61059BFC1CDDEB05917DD70BDF3A611654162A1A47DB930D40D8AF4",
            ),
            (
                "transfer/channel-0/transfer/channel-3/uusdc",
                "ibc/AA4E7DF065DC4D4B29B8662A919295F525B19251FB2618C41C0DED3BD1128FEE",
            ),
            (
                "transfer/channel-0/uinit",
                "ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50",
            ),
            (
                "transfer/channel-25/l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06",
                "ibc/07FFEEEE36370551554531FF7189EB2D3353B187CB6CE715DA1291C3A4B4EAC2",
            ),
        ];
        for (path, denom) in vectors {
            assert_eq!(of_path(path), denom);
        }
        assert_eq!(of_path("uinit"), "uinit");
        assert_eq!(of_path("factory/init1/x"), "factory/init1/x");
    }

    #[test]
    fn a_base_keeps_its_slashes() {
        assert_eq!(split("transfer/channel-25/evm/44CF"), (vec![("transfer", "channel-25")], "evm/44CF"));
        assert_eq!(split("factory/osmo1/channel-7"), (vec![], "factory/osmo1/channel-7"));
        assert_eq!(split("transfer/channel-x/u"), (vec![], "transfer/channel-x/u"));
        assert_eq!(split("transfer/channel-1/"), (vec![], "transfer/channel-1/"));
        assert_eq!(split("factory/osmo1/wasm-7/u"), (vec![], "factory/osmo1/wasm-7/u"));
    }

    #[test]
    fn a_hop_of_ibc_v2_names_its_client() {
        let path = "transfer/channel-0/transfer/08-wasm-1369/0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2";
        let hops = vec![("transfer", "channel-0"), ("transfer", "08-wasm-1369")];
        assert_eq!(split(path), (hops, "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"));
        assert_eq!(of_path(path), "ibc/20850C646CDDDC2270E9BBDB08558B5FEE57B647EC6827F41096AABFD8A0471B");
    }

    #[test]
    fn a_token_that_returns_loses_its_hop_and_any_other_gains_one() {
        let (src, dst) = (("transfer", "channel-0"), ("transfer", "channel-9"));
        assert_eq!(received("uinit", src, dst), "transfer/channel-9/uinit");
        assert_eq!(received("transfer/channel-0/uinit", src, dst), "uinit");
        assert_eq!(
            received("transfer/channel-9/uinit", src, dst),
            "transfer/channel-9/transfer/channel-9/uinit"
        );
    }

    #[test]
    fn bridged_coins_have_the_denominations_that_the_bridge_gives_them() {
        assert_eq!(
            bridged(11, "uinit"),
            "l2/8f73cfaf153520f511b4fc0bd71d60d64b4e19eff04a350e642718a3c1ab3b06"
        );
        assert_eq!(
            bridged(42, "uinit"),
            "l2/fe807d454c86db0d3f2b1c5ee5108b9440b5dcb98947585e3dc25ed3d6dfa900"
        );
    }

    #[test]
    fn denominations_are_those_of_the_sdk() {
        for yes in ["uinit", "ibc/37A3", "evm/856a", "GAS", "a:._-/0"] {
            assert!(is_denom(yes), "{yes}");
        }
        for no in ["", "u", "uu", "0abc", "ab c", "/abc", &"u".repeat(129)] {
            assert!(!is_denom(no), "{no}");
        }
    }
}
