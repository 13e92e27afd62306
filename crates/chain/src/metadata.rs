//! Metadata of tokens: names, symbols and decimals in the replies of contracts and modules.
//!
//! # Invariants
//!
//! Strangers choose them. What does not decode is [`Said::Nothing`], and what is longer than [`MAX_BYTES`] is [`Said::TooLong`]: neither
//! is an empty text. A text has no characters that hide, or that change the order of others.

use serde::Deserialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use unicode_properties::{GeneralCategory, UnicodeGeneralCategory as _};

use crate::evm::abi;
use crate::movement::metadata_of_denom;
use crate::nft::move_vm;
use crate::sanitize::Text;

/// Bytes of a name or symbol: twice the longest that a bridge makes.
pub const MAX_BYTES: usize = 256;

/// Maximum decimals, which are 8 bits wherever a standard defines them.
const MAX_DECIMALS: u64 = 255;

/// The reply to one question about a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Said<T> {
    /// Nothing: a refusal, or a reply that does not decode.
    #[default]
    Nothing,
    /// This.
    Value(T),
    /// More than is stored.
    TooLong,
}

/// The replies to the questions about a token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    /// Its name.
    pub name: Said<String>,
    /// Its symbol.
    pub symbol: Said<String>,
    /// Decimal places of its amounts.
    pub decimals: Said<u64>,
    /// Its denom in the chain's bank, if it has one.
    pub denom: Option<String>,
    /// The contract declares that it is an ERC-721.
    pub is_erc721: bool,
    /// Of an asset of Move: a function of its module computes the balances that the bank shows.
    pub is_derived: bool,
}

/// The visible characters of a name or symbol.
pub fn text(text: &str) -> Said<String> {
    if text.len() > MAX_BYTES {
        return Said::TooLong;
    }
    Said::Value(text.chars().filter(|&c| is_visible(c)).collect())
}

/// False for control characters, line breaks, marks of the direction, and others without a form of their own. Emojis and some
/// scripts need the two joiners.
fn is_visible(c: char) -> bool {
    use GeneralCategory::{Control, Format, LineSeparator, ParagraphSeparator};
    matches!(c, '\u{200c}' | '\u{200d}')
        || !matches!(c.general_category(), Control | Format | LineSeparator | ParagraphSeparator)
}

fn decimals(number: u64) -> Said<u64> {
    if number > MAX_DECIMALS { Said::TooLong } else { Said::Value(number) }
}

/// The replies of an EVM contract to `name()` or `symbol()`; `None` is a revert.
pub fn evm_text(reply: Option<&[u8]>) -> Said<String> {
    match reply.and_then(abi::read_string) {
        Some(Text::Plain(plain)) => text(&plain),
        Some(Text::TooLong) => Said::TooLong,
        None => Said::Nothing,
    }
}

/// The reply of an EVM contract to `decimals()`; `None` is a revert.
pub fn evm_decimals(reply: Option<&[u8]>) -> Said<u64> {
    let number = reply.and_then(abi::read_uint);
    number.map_or(Said::Nothing, |number| decimals(u64::try_from(number).unwrap_or(u64::MAX)))
}

/// The members of metadata, which name things alike.
#[derive(Deserialize)]
struct Members {
    name: String,
    symbol: String,
    decimals: u64,
}

impl From<Members> for Metadata {
    fn from(Members { name, symbol, decimals: places }: Members) -> Self {
        let (name, symbol, decimals) = (text(&name), text(&symbol), decimals(places));
        Self { name, symbol, decimals, ..Self::default() }
    }
}

/// The reply of a contract of wasm to `{"token_info":{}}`; `None` if it is none of a cw20.
pub fn cw20(reply: &[u8]) -> Option<Metadata> {
    #[derive(Deserialize)]
    struct Reply {
        data: Members,
    }
    serde_json::from_slice(reply).ok().map(|reply: Reply| reply.data.into())
}

/// The reply of a contract of wasm to `{"contract_info":{}}`; `None` if it is none of a cw721.
pub fn cw721(reply: &[u8]) -> Option<Metadata> {
    #[derive(Deserialize)]
    struct Reply {
        data: Info,
    }
    #[derive(Deserialize)]
    struct Info {
        name: String,
        symbol: String,
    }
    let Reply { data } = serde_json::from_slice(reply).ok()?;
    Some(Metadata { name: text(&data.name), symbol: text(&data.symbol), ..Metadata::default() })
}

/// The resource `0x1::collection::Collection` of Move, which has no symbol; `None` if it is none.
pub fn collection(reply: &[u8]) -> Option<Metadata> {
    let name = match move_vm::collection_resource(reply)?.name {
        Text::Plain(name) => text(&name),
        Text::TooLong => Said::TooLong,
    };
    Some(Metadata { name, ..Metadata::default() })
}

/// A fungible asset of Move: its resource `0x1::fungible_asset::Metadata`, overridden by `ExtraMetadata` of the same module, if it
/// has that; `None` if the first is no metadata.
pub fn fungible_asset(object: &[u8; 32], plain: &[u8], extra: Option<&[u8]>) -> Option<Metadata> {
    let mut own: Members = resource(plain)?;
    // A denom is a symbol only if the address follows from it (`initia:x/move/types/denom.go`).
    let named = |members: &Members| metadata_of_denom(&members.symbol).as_ref() == Some(object);
    let is_named = !own.symbol.starts_with("move/") && named(&own);
    let denom = if is_named { own.symbol.clone() } else { format!("move/{}", hex::encode(object)) };
    // The module itself shows this one in another way (`initia_stdlib`, `fungible_asset::metadata`).
    if is_named && denom == "uinit" {
        (own.symbol, own.decimals) = ("INIT".to_owned(), 6);
    }
    let shown = extra.and_then(resource).unwrap_or(own);
    Some(Metadata { denom: Some(denom), ..shown.into() })
}

/// True if the resource `0x1::fungible_asset::DispatchFunctionStore` of an asset names a function for its balances.
pub fn has_derived_balances(reply: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Functions {
        derived_balance_function: Option<IgnoredAny>,
    }
    resource(reply).is_some_and(|functions: Functions| functions.derived_balance_function.is_some())
}

/// The data of a resource of Move.
fn resource<T: DeserializeOwned>(reply: &[u8]) -> Option<T> {
    #[derive(Deserialize)]
    struct Reply {
        resource: Resource,
    }
    #[derive(Deserialize)]
    struct Resource {
        move_resource: String,
    }
    #[derive(Deserialize)]
    struct Typed<T> {
        data: T,
    }
    let reply: Reply = serde_json::from_slice(reply).ok()?;
    serde_json::from_str(&reply.resource.move_resource).ok().map(|typed: Typed<T>| typed.data)
}

/// The bank's metadata of a denom: its decimals are the exponent of the unit that is displayed. `None` if the reply is none.
pub fn bank(reply: &[u8]) -> Option<Metadata> {
    #[derive(Deserialize)]
    struct Reply {
        metadata: Bank,
    }
    #[derive(Deserialize)]
    struct Bank {
        #[serde(default)]
        denom_units: Vec<Unit>,
        #[serde(default)]
        display: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        symbol: String,
    }
    #[derive(Deserialize)]
    struct Unit {
        denom: String,
        #[serde(default)]
        exponent: u64,
    }
    let Reply { metadata } = serde_json::from_slice(reply).ok()?;
    let displayed = metadata.denom_units.iter().find(|unit| unit.denom == metadata.display);
    Some(Metadata {
        name: text(&metadata.name),
        symbol: text(&metadata.symbol),
        decimals: displayed.map_or(Said::Nothing, |unit| decimals(unit.exponent)),
        ..Metadata::default()
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value(text: &str) -> Said<String> {
        Said::Value(text.to_owned())
    }

    #[test]
    fn what_hides_or_turns_text_around_is_left_out_and_the_rest_stays() {
        for (said, shown) in [
            ("USD Coin", "USD Coin"),
            ("\u{202e}niC\u{202c} DSU\u{2066}\u{2069}\u{200e}\u{61c}", "niC DSU"),
            ("a\0b\r\nc\u{2028}d\u{2029}\u{feff}\u{200b}", "abcd"),
            ("\u{1f468}\u{200d}\u{1f469} =1+1 <b>", "\u{1f468}\u{200d}\u{1f469} =1+1 <b>"),
            ("\u{e0041}tag", "tag"),
            ("", ""),
        ] {
            assert_eq!(text(said), value(shown), "{said:?}");
        }
    }

    #[test]
    fn a_long_text_is_marked_and_not_cut() {
        assert_eq!(text(&"S".repeat(MAX_BYTES)), value(&"S".repeat(MAX_BYTES)));
        assert_eq!(text(&"S".repeat(MAX_BYTES + 1)), Said::TooLong);
        // What is left out counts.
        assert_eq!(text(&"\n".repeat(MAX_BYTES + 1)), Said::TooLong);
    }

    #[test]
    fn replies_of_contracts_are_read_and_false_ones_say_nothing() {
        let mut maker = [0; 32];
        maker[..3].copy_from_slice(b"MKR");
        assert_eq!(evm_text(Some(&maker)), value("MKR"));
        assert_eq!(evm_text(None), Said::Nothing);
        assert_eq!(evm_text(Some(&[])), Said::Nothing);
        let mut number = [0; 32];
        number[31] = 7;
        assert_eq!((evm_text(Some(&number)), evm_decimals(Some(&number))), (Said::Nothing, Said::Value(7)));
        number[30] = 1;
        assert_eq!(evm_decimals(Some(&number)), Said::TooLong);
        assert_eq!(evm_decimals(Some(&[0xff; 32])), Said::TooLong);
        assert_eq!(evm_decimals(Some(&[0; 31])), Said::Nothing);
        assert_eq!(evm_decimals(None), Said::Nothing);
    }

    #[test]
    fn a_cw20_says_all_of_name_symbol_and_decimals() {
        let found =
            cw20(br#"{"data":{"name":"=Evil,\"Name\"","symbol":"UMIN","decimals":0,"total_supply":"1"}}"#);
        let found = found.unwrap();
        assert_eq!((found.name, found.symbol), (value("=Evil,\"Name\""), value("UMIN")));
        assert_eq!(found.decimals, Said::Value(0));
        for reply in [
            r#"{"data":{"name":"a","symbol":"b"}}"#,
            r#"{"data":{"name":1,"symbol":"b","decimals":1}}"#,
            r#"{"data":{"name":"a","symbol":"b","decimals":-1}}"#,
            r#"{"data":[]}"#,
            "{}",
            "",
        ] {
            assert_eq!(cw20(reply.as_bytes()), None, "{reply}");
        }
    }

    fn asset(name: &str, symbol: &str, decimals: u64) -> Vec<u8> {
        let data = serde_json::json!({
            "type": "", "data": { "name": name, "symbol": symbol, "decimals": decimals, "icon_uri": "" }
        });
        serde_json::json!({ "resource": { "move_resource": data.to_string() } }).to_string().into_bytes()
    }

    #[test]
    fn extra_metadata_overrides_and_a_denom_is_proved_by_the_address() {
        let umin = metadata_of_denom("umin").unwrap();
        let plain = fungible_asset(&umin, &asset("umin Coin", "umin", 0), None).unwrap();
        assert_eq!((plain.denom.as_deref(), plain.symbol), (Some("umin"), value("umin")));
        let other = fungible_asset(&[7; 32], &asset("False", "umin", 3), None).unwrap();
        let own = format!("move/{}", hex::encode([7; 32]));
        assert_eq!(
            (other.denom, other.symbol, other.decimals),
            (Some(own.clone()), value("umin"), Said::Value(3))
        );
        let extra = asset("Renamed", "OTHER", 6);
        let renamed = fungible_asset(&umin, &asset("umin Coin", "umin", 0), Some(&extra)).unwrap();
        assert_eq!((renamed.denom.as_deref(), renamed.name), (Some("umin"), value("Renamed")));
        assert_eq!((renamed.symbol, renamed.decimals), (value("OTHER"), Said::Value(6)));
        assert_eq!(fungible_asset(&umin, b"{}", Some(&extra)), None);
        // The symbol of an asset may be the denom of itself in another form.
        let itself = fungible_asset(&[7; 32], &asset("a", &own, 3), None).unwrap();
        assert_eq!((itself.denom, itself.symbol), (Some(own.clone()), value(&own)));
    }

    #[test]
    fn init_is_shown_as_its_module_shows_it() {
        let uinit = metadata_of_denom("uinit").unwrap();
        let init = fungible_asset(&uinit, &asset("uinit Coin", "uinit", 0), None).unwrap();
        assert_eq!((init.symbol, init.decimals), (value("INIT"), Said::Value(6)));
        let false_one = fungible_asset(&[1; 32], &asset("uinit Coin", "uinit", 0), None).unwrap();
        assert_eq!((false_one.symbol, false_one.decimals), (value("uinit"), Said::Value(0)));
    }

    #[test]
    fn the_decimals_of_a_bank_denom_are_those_of_its_displayed_unit() {
        let reply = br#"{"metadata":{"denom_units":[{"denom":"umin","exponent":0,"aliases":[]},{"denom":"min","exponent":6}],
            "base":"umin","display":"min","name":"umin Coin","symbol":"umin"}}"#;
        let found = bank(reply).unwrap();
        assert_eq!((found.symbol, found.decimals), (value("umin"), Said::Value(6)));
        let bridged = br#"{"metadata":{"denom_units":[{"denom":"uinit"}],"display":"transfer/channel-0/uinit","symbol":"UINIT"}}"#;
        assert_eq!(bank(bridged).unwrap().decimals, Said::Nothing);
        assert_eq!(bank(b"{}"), None);
    }

    proptest! {
        #[test]
        fn noise_never_panics_and_a_text_is_never_longer_than_the_bound(noise in any::<Vec<u8>>(), said: String) {
            let _ = (evm_text(Some(&noise)), evm_decimals(Some(&noise)), cw20(&noise), bank(&noise));
            let _ = fungible_asset(&[1; 32], &noise, Some(&noise));
            if let Said::Value(shown) = text(&said) {
                prop_assert!(shown.len() <= MAX_BYTES && !shown.contains(char::is_control));
            }
        }
    }
}
