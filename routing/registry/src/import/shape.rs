//! The form of public files: valid JSON in which no key is repeated, and each member that is read has its type.
//!
//! A file of another form is broken; see [`crate::last_good`]. Members that are not read may have any form.

use std::collections::BTreeSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A kind of file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `chain.json`.
    Chain,
    /// `chains.json` of the built site: the chains in one array.
    Chains,
    /// `assetlist.json`.
    Assets,
    /// A file of `_IBC`.
    Pair,
}

/// A type of JSON.
#[derive(Clone, Copy, PartialEq)]
enum Type {
    Text,
    /// A text that is not empty and must be there: without it the part is left out.
    Name,
    Number,
    Flag,
    List,
    Object,
}

use Type::{Flag, List, Name, Number, Object, Text};

/// Members by path, `*` for each element of a list. Absent and `null` are the same.
type Members = &'static [(&'static str, Type)];

const CHAIN: Members = &[
    ("chain_id", Name),
    ("chain_name", Text),
    ("pretty_name", Text),
    ("chain_type", Text),
    ("status", Text),
    ("network_type", Text),
    ("bech32_prefix", Name),
    ("logo_URIs", Object),
    ("images", List),
    ("explorers", List),
    ("explorers/*/tx_page", Text),
    ("fees", Object),
    ("fees/fee_tokens", List),
    ("fees/fee_tokens/*/denom", Text),
    ("fees/fee_tokens/*/fixed_min_gas_price", Number),
    ("fees/fee_tokens/*/low_gas_price", Number),
    ("fees/fee_tokens/*/average_gas_price", Number),
    ("fees/fee_tokens/*/high_gas_price", Number),
    ("apis", Object),
    ("apis/rpc", List),
    ("apis/rpc/*/address", Text),
    ("apis/rest", List),
    ("apis/rest/*/address", Text),
    ("apis/json-rpc", List),
    ("apis/json-rpc/*/address", Text),
    ("apis/evm-http-jsonrpc", List),
    ("apis/evm-http-jsonrpc/*/address", Text),
    ("metadata", Object),
    ("metadata/is_l1", Flag),
    ("metadata/deprecated", Flag),
    ("metadata/op_bridge_id", Text),
    ("metadata/op_denoms", List),
    ("metadata/op_denoms/*", Text),
    ("metadata/executor_uri", Text),
    ("metadata/minitia", Object),
    ("metadata/minitia/type", Text),
    ("metadata/ibc_channels", List),
    ("metadata/ibc_channels/*/chain_id", Name),
    ("metadata/ibc_channels/*/port_id", Text),
    ("metadata/ibc_channels/*/channel_id", Name),
    ("metadata/ibc_channels/*/version", Text),
];

const ASSETS: Members = &[
    ("assets", List),
    ("assets/*", Object),
    ("assets/*/base", Text),
    ("assets/*/symbol", Text),
    ("assets/*/name", Text),
    ("assets/*/display", Text),
    ("assets/*/description", Text),
    ("assets/*/coingecko_id", Text),
    ("assets/*/address", Text),
    ("assets/*/deprecated", Flag),
    ("assets/*/logo_URIs", Object),
    ("assets/*/images", List),
    ("assets/*/denom_units", List),
    ("assets/*/denom_units/*/denom", Text),
    ("assets/*/denom_units/*/exponent", Number),
    ("assets/*/denom_units/*/aliases", List),
    ("assets/*/traces", List),
    ("assets/*/traces/*/type", Text),
    ("assets/*/traces/*/provider", Text),
    ("assets/*/traces/*/chain", Object),
    ("assets/*/traces/*/chain/channel_id", Text),
    ("assets/*/traces/*/chain/port", Text),
    ("assets/*/traces/*/chain/path", Text),
    ("assets/*/traces/*/counterparty", Object),
    ("assets/*/traces/*/counterparty/chain_name", Text),
    ("assets/*/traces/*/counterparty/chain_id", Text),
    ("assets/*/traces/*/counterparty/base_denom", Text),
    ("assets/*/traces/*/counterparty/channel_id", Text),
    ("assets/*/traces/*/counterparty/port", Text),
];

const PAIR: Members = &[
    ("chain_1", Object),
    ("chain_1/chain_name", Text),
    ("chain_1/chain_id", Text),
    ("chain_2", Object),
    ("chain_2/chain_name", Text),
    ("chain_2/chain_id", Text),
    ("channels", List),
    ("channels/*", Object),
    ("channels/*/chain_1", Object),
    ("channels/*/chain_1/port_id", Name),
    ("channels/*/chain_1/channel_id", Name),
    ("channels/*/chain_2", Object),
    ("channels/*/chain_2/port_id", Name),
    ("channels/*/chain_2/channel_id", Name),
    ("channels/*/version", Text),
    ("channels/*/tags", Object),
    ("channels/*/tags/status", Text),
];

/// Most flaws of a file that are reported.
const MAX_FLAWS: usize = 20;

impl Kind {
    /// Members without which a file says nothing.
    fn required(self) -> &'static [&'static str] {
        match self {
            Self::Chain => &["chain_id"],
            Self::Chains => &[],
            Self::Assets => &["assets"],
            Self::Pair => &["chain_1", "chain_2", "channels"],
        }
    }

    fn members(self) -> Members {
        match self {
            Self::Chain | Self::Chains => CHAIN,
            Self::Assets => ASSETS,
            Self::Pair => PAIR,
        }
    }
}

/// What is wrong with a file that can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Flaws {
    /// Members of a wrong type, which count as absent, and repeated keys.
    pub(super) wrong: BTreeSet<String>,
    /// Parts that lack a member, and are left out.
    pub(super) lacking: BTreeSet<String>,
}

/// Parses a file and lists its flaws.
///
/// # Errors
/// Why it cannot be used at all.
pub(super) fn parse(text: &str, kind: Kind) -> Result<(Value, Flaws), String> {
    let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let mut flaws = Flaws::default();
    let mut keys = serde_json::Deserializer::from_str(text);
    // The text is valid JSON, so this cannot fail.
    drop(Keys(&mut flaws).deserialize(&mut keys));
    if kind == Kind::Chains {
        let chains = value.as_array().ok_or("must be an array of chains")?;
        for (index, chain) in chains.iter().enumerate() {
            flaws.check_members(chain, kind, &format!("[{}]", label(chain, index)));
        }
    } else {
        flaws.check_members(&value, kind, "");
        if let Some(name) = kind.required().iter().find(|name| !is_given(&value[**name])) {
            return Err(format!("`{name}` is missing or has the wrong type"));
        }
    }
    if kind == Kind::Assets {
        for (index, asset) in value["assets"].as_array().into_iter().flatten().enumerate() {
            if let Err(what) = super::assets::draft(asset, "") {
                flaws.lacking.insert(format!("{}: {what}", label(asset, index)));
            }
        }
    }
    Ok((value, flaws))
}

/// Whether a required member has its type: a name, an object or a list.
fn is_given(value: &Value) -> bool {
    value.is_object() || value.is_array() || value.as_str().is_some_and(|text| !text.is_empty())
}

/// The name of an element in messages, which stays if others are added; its index if it has none.
fn label(element: &Value, index: usize) -> String {
    let name = ["base", "chain_name"].into_iter().find_map(|name| element[name].as_str());
    name.map_or_else(|| index.to_string(), |name| chain::truncated(name, 128))
}

impl Flaws {
    fn add(&mut self, flaw: String) {
        if self.wrong.len() < MAX_FLAWS {
            self.wrong.insert(flaw);
        }
    }

    fn check_members(&mut self, value: &Value, kind: Kind, at: &str) {
        for (path, ty) in kind.members() {
            self.check(value, path, *ty, at);
        }
    }

    /// Checks the members at `path` of the value at `at`.
    fn check(&mut self, value: &Value, path: &str, ty: Type, at: &str) {
        let (step, rest) = path.split_once('/').unwrap_or((path, ""));
        let mut enter = |inner: &Value, at: String| match inner {
            Value::Null if rest.is_empty() && ty == Name => {
                self.lacking.insert(format!("`{at}` is missing"));
            }
            Value::Null => {}
            _ if !rest.is_empty() => self.check(inner, rest, ty, &at),
            _ if !ty.has(inner) => self.add(format!("`{at}` must be {ty}")),
            _ => {}
        };
        if step == "*" {
            for (index, inner) in value.as_array().into_iter().flatten().enumerate() {
                enter(inner, format!("{at}[{}]", label(inner, index)));
            }
        } else if value.is_object() {
            enter(&value[step], if at.is_empty() { step.to_owned() } else { format!("{at}.{step}") });
        }
    }
}

impl Type {
    fn has(self, value: &Value) -> bool {
        match self {
            Self::Text => value.is_string(),
            Self::Name => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::Number => value.is_number(),
            Self::Flag => value.is_boolean(),
            Self::List => value.is_array(),
            Self::Object => value.is_object(),
        }
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "a text",
            Self::Name => "a text that is not empty",
            Self::Number => "a number",
            Self::Flag => "true or false",
            Self::List => "an array",
            Self::Object => "an object",
        })
    }
}

/// Looks for keys that an object has twice, of which JSON parsers use the last.
struct Keys<'f>(&'f mut Flaws);

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

/// Visits of values that have no keys.
macro_rules! visits {
    ($($visit:ident: $type:ty),+) => {
        $(fn $visit<E>(self, _: $type) -> Result<(), E> {
            Ok(())
        })+
    };
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut keys = BTreeSet::new();
        while let Some(key) = map.next_key::<String>()? {
            map.next_value_seed(Keys(&mut *self.0))?;
            if keys.contains(&key) {
                self.0.add(format!("the key `{}` is there twice", chain::truncated(&key, 64)));
            }
            keys.insert(key);
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Keys(&mut *self.0))?.is_some() {}
        Ok(())
    }

    visits! { visit_bool: bool, visit_i64: i64, visit_u64: u64, visit_f64: f64, visit_str: &str }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}
