//! Proxies, by their code and by their storage: EIP-1167 (minimal proxies), EIP-1967 (slots for upgradeable ones) and EIP-7702 (accounts
//! that run a contract's code).

use maud::{Markup, html};

/// Storage slots of EIP-1967: of the contract behind the proxy, and of the beacon that names it.
pub(super) const IMPLEMENTATION: &str = "0x360894a13ba1a3210667c828492db98dca3e2076cc3735a920a3ca505d382bbc";
pub(super) const BEACON: &str = "0xa3f0ad74e5423aebfd80d3ef4346578335a9a72aeaee59ff6cb3582b35133d50";

/// `implementation()`, which a beacon has.
pub(super) const OF_BEACON: &str = "0x5c60da1b";

/// The code of a minimal proxy, before and after the address.
const MINIMAL: (&str, &str) = ("363d3d373d3d3d363d73", "5af43d82803e903d91602b57fd5bf3");

/// The code of an account with a delegation, before the address.
const DELEGATION: &str = "ef0100";

/// Digits of an address, and of a word.
const ADDRESS: usize = 40;
const WORD: usize = 64;

/// What runs in place of a contract's own code.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Proxy {
    /// The standard.
    pub(super) kind: &'static str,
    /// The contract behind it, in hex.
    pub(super) implementation: String,
}

/// By the code alone, in hex.
pub(super) fn by_code(code: &str) -> Option<Proxy> {
    let digits = code.strip_prefix("0x")?;
    let found = |kind, address: &str| Some(Proxy { kind, implementation: format!("0x{address}") });
    if let Some((address, rest)) =
        digits.strip_prefix(MINIMAL.0).and_then(|rest| rest.split_at_checked(ADDRESS))
    {
        // Arguments of a clone may follow.
        return if rest.starts_with(MINIMAL.1) { found("minimal proxy (EIP-1167)", address) } else { None };
    }
    let address = digits.strip_prefix(DELEGATION).filter(|address| address.len() == ADDRESS)?;
    found("account with a delegation (EIP-7702)", address)
}

/// By a word of storage, or one that a beacon returned.
pub(super) fn by_word(kind: &'static str, word: &str) -> Option<Proxy> {
    Some(Proxy { kind, implementation: address(word)? })
}

/// The address in a word; `None` for zero, and for what is no address.
pub(super) fn address(word: &str) -> Option<String> {
    let digits = word.strip_prefix("0x").filter(|digits| digits.len() == WORD && digits.is_ascii())?;
    let (zeros, address) = digits.split_at(WORD - ADDRESS);
    let is_zero = |digits: &str| digits.bytes().all(|digit| digit == b'0');
    (is_zero(zeros) && !is_zero(address)).then(|| format!("0x{address}"))
}

impl Proxy {
    /// Its kind, and the link of what is behind it.
    pub(super) fn shown(&self) -> Markup {
        html! { (self.kind) " of " a.mono href=(crate::target::contract(&self.implementation)) { (self.implementation) } }
    }
}

#[cfg(test)]
mod tests {
    use chain::U256;
    use chain::hash::{code_hash, to_hex};

    use super::*;

    #[test]
    fn the_slots_are_those_of_the_standard() {
        for (name, slot) in [("implementation", IMPLEMENTATION), ("beacon", BEACON)] {
            let hash = to_hex(&code_hash(format!("eip1967.proxy.{name}").as_bytes()));
            let before = U256::from_str_radix(&hash, 16).unwrap() - U256::from(1);
            assert_eq!(slot, format!("{before:#066x}"), "{name}");
        }
    }

    #[test]
    fn a_proxy_is_known_by_its_code_or_by_a_word() {
        let address = "ab".repeat(20);
        let of = |code: &str| by_code(code).map(|proxy| proxy.implementation);
        let own = Some(format!("0x{address}"));
        assert_eq!(of(&format!("0x{}{address}{}", MINIMAL.0, MINIMAL.1)), own);
        assert_eq!(of(&format!("0x{}{address}{}c0ffee", MINIMAL.0, MINIMAL.1)), own);
        assert_eq!(of(&format!("0xef0100{address}")), own);
        for code in [
            format!("0x{}{address}", MINIMAL.0),
            format!("0xef0100{address}00"),
            "0x6080".into(),
            "0x".into(),
            String::new(),
        ] {
            assert_eq!(of(&code), None, "{code}");
        }
        let word = |digits: &str| by_word("x", digits).map(|proxy| proxy.implementation);
        assert_eq!(word(&format!("0x{}{address}", "0".repeat(24))), own);
        for digits in [
            format!("0x{}", "0".repeat(64)),
            format!("0x{}", "1".repeat(64)),
            "0x".into(),
            format!("0x{}", "é".repeat(32)),
        ] {
            assert_eq!(word(&digits), None, "{digits}");
        }
    }
}
