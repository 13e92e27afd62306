//! The parameters of a request: of the query string and of a form, by names in any case. The form has precedence, but for
//! `chainid`, which is that of the query string.

use query::evm::history::Window;
use web::call::Call;

use crate::outcome::Failure;

/// Rows of a list, and of all its pages together.
const MAX_ROWS: u64 = 10_000;

/// The parameters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Form {
    /// In the order of the request, with names in lower case.
    pairs: Vec<(String, String)>,
}

/// A text of Etherscan for an invalid parameter.
fn invalid<T>(text: &str) -> Result<T, Failure> {
    Err(Failure::Text(text.to_owned()))
}

impl Form {
    pub(crate) fn read(call: &Call<'_>) -> Result<Self, Failure> {
        let pairs = call.form()?.into_iter();
        let pairs = pairs.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        Ok(Self { pairs: pairs.collect() })
    }

    /// A parameter that is not empty; the last one counts.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let value = self.pairs.iter().rev().find(|(other, _)| other == name);
        value.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }

    /// The chain that is asked.
    pub(crate) fn chain_id(&self) -> Option<&str> {
        let value = self.pairs.iter().find(|(name, value)| name == "chainid" && !value.is_empty());
        value.map(|(_, value)| value.as_str())
    }

    /// An address that may be absent.
    pub(crate) fn address(&self, name: &str) -> Result<Option<[u8; 20]>, Failure> {
        self.get(name).map(address).transpose()
    }

    /// The addresses of a list with commas between them.
    pub(crate) fn addresses(&self, name: &str, most: usize) -> Result<Vec<[u8; 20]>, Failure> {
        let all: Vec<_> = self.required(name)?.split(',').map(str::trim).collect();
        if all.len() > most {
            return invalid(&format!(
                "Error! {name} has {} addresses, at most {most} are allowed",
                all.len()
            ));
        }
        all.into_iter().map(address).collect()
    }

    /// An address that must be there.
    pub(crate) fn one_address(&self, name: &str) -> Result<[u8; 20], Failure> {
        self.address(name)?.map_or_else(|| invalid("Error! Missing address"), Ok)
    }

    /// A hash of a transaction.
    pub(crate) fn hash(&self, name: &str) -> Result<Option<[u8; 32]>, Failure> {
        let Some(text) = self.get(name) else { return Ok(None) };
        bytes(text).map_or_else(|| invalid("Error! Invalid transaction hash"), |hash| Ok(Some(hash)))
    }

    pub(crate) fn required(&self, name: &str) -> Result<&str, Failure> {
        self.get(name).map_or_else(|| invalid(&format!("Error! Missing parameter {name}")), Ok)
    }

    /// A decimal number that may be absent. One of more than 64 bits is above all that there is, as the greatest of 64 bits is.
    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Failure> {
        let Some(text) = self.get(name) else { return Ok(None) };
        if !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return invalid(&format!("Error! Invalid {name}: a decimal number is expected"));
        }
        Ok(Some(text.parse().unwrap_or(u64::MAX)))
    }

    /// A height that may be absent: decimal or hex, or by name, where the last block is `head`.
    pub(crate) fn height(&self, name: &str, head: u64) -> Result<Option<u64>, Failure> {
        let Some(text) = self.get(name) else { return Ok(None) };
        match text.to_ascii_lowercase().as_str() {
            "latest" | "pending" | "safe" | "finalized" => Ok(Some(head)),
            "earliest" => Ok(Some(0)),
            hex if hex.starts_with("0x") => match u64::from_str_radix(&hex[2..], 16) {
                Ok(height) => Ok(Some(height)),
                Err(_) => invalid(&format!("Error! Invalid {name}")),
            },
            _ => self.number(name),
        }
    }

    /// The window of a list: `page`, `offset`, `sort`, and the blocks from `startblock` to `endblock`; the last block is `head`.
    pub(crate) fn window(&self, head: u64) -> Result<Window, Failure> {
        let start = self.height("startblock", head)?.unwrap_or(0);
        let end = self.height("endblock", head)?.unwrap_or(u64::MAX);
        let newest_first = match self.get("sort").map(str::to_ascii_lowercase).as_deref() {
            None | Some("asc") => false,
            Some("desc") => true,
            Some(_) => return invalid("Error! Invalid sort: asc or desc is expected"),
        };
        Ok(Window { newest_first, ..self.page(MAX_ROWS, start..=end)? })
    }

    /// The page of a list with at most `most` rows, of these blocks.
    pub(crate) fn page(&self, most: u64, heights: std::ops::RangeInclusive<u64>) -> Result<Window, Failure> {
        // foundry sends page 0 for the first one.
        let page = self.number("page")?.unwrap_or(1).max(1);
        let given = self.number("offset")?.filter(|offset| *offset > 0);
        let take = given.unwrap_or(most);
        if page.saturating_mul(take) > MAX_ROWS {
            return invalid(
                "Result window is too large, PageNo x Offset size must be less than or equal to 10000",
            );
        }
        let take = take.min(most);
        Ok(Window { heights, skip: (page - 1) * take, take, newest_first: false })
    }
}

fn address(text: &str) -> Result<[u8; 20], Failure> {
    bytes(text).map_or_else(|| invalid("Error! Invalid address format"), Ok)
}

/// `0x` and so many bytes in hex.
pub(crate) fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"))?;
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}
