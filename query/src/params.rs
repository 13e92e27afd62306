//! Request parameters shared by several endpoints, and the `pagination` object of responses.
//!
//! Errors contain the parameter, the value and the allowed values; their texts begin like those of the deployed server.

use chain::Account;
use schema::keys::Role;
use schema::msg_set;
use store::Snapshot;
use web::call::Call;
use web::endpoint::{Param, QueryParam, Type, pagination};
use web::http_error::HttpError;

use crate::cursor::{self, Cursor, Row, Space, Start};
use crate::indexer::{EmptyCursor, Indexer};
use crate::msg_sets;
use crate::page::{Direction, Page, PageRequest};

/// Rows of a page if the request has no limit.
pub(crate) const DEFAULT_LIMIT: u64 = 100;
/// Maximum number of rows of a page.
pub(crate) const MAX_LIMIT: u64 = 1000;
/// Maximum number of message types in a filter.
const MAX_TYPES: usize = 64;
/// Maximum number of characters of an invalid value in an error.
const SHOWN: usize = 80;

/// A recorded account, with the prefix `init`.
pub(crate) const ACCOUNT: &str = "init1qhjfkdw9snyrun3e68zjhydgsq95swrxaqs9tw";

/// An address: hex, or bech32, whose checksum no expression describes.
pub(crate) const ADDRESS: Type = Type::PatternOr("^(0[xX])?0*[0-9a-fA-F]{0,64}$", &[ACCOUNT]);

/// A height of a block.
pub(crate) const HEIGHT: Type = Type::Between(1, i64::MAX);

/// The hash of a transaction.
pub(crate) const HASH: Type = Type::Pattern("^(0[xX])?[0-9a-fA-F]{63,64}$");

/// The parameters of a paged list whose cursors are of `space`.
pub(crate) const fn pages(space: Space) -> [QueryParam; 5] {
    let recorded = space.recorded();
    let pattern = space.pattern();
    pagination(if recorded.is_empty() { Type::Pattern(pattern) } else { Type::PatternOr(pattern, recorded) })
}

/// As [`pages`], for an endpoint that calls [`check`] and has at most `max` rows a page.
pub(crate) const fn checked_pages(space: Space, max: u64) -> [QueryParam; 5] {
    let [key, offset, limit, count_total, reverse] = pages(space);
    let (offset, limit) = (
        QueryParam { ty: Type::Between(0, i64::MAX), ..offset },
        QueryParam { ty: Type::Between(1, max.cast_signed()), ..limit },
    );
    let (count_total, reverse) =
        (QueryParam { ty: Type::Flag, ..count_total }, QueryParam { ty: Type::Flag, ..reverse });
    [key, offset, limit, count_total, reverse]
}

/// Checks the query string of an endpoint that no deployed server has, so that no client relies on what it ignores: each
/// name is one of `params`, and numbers, flags and words are of their types. Handlers check texts.
pub(crate) fn check(call: &Call<'_>, params: &[Param]) -> Result<(), HttpError> {
    let declared = || params.iter().flat_map(Param::queries);
    for (name, value) in call.form()? {
        let Some(param) = declared().find(|param| param.name == name) else {
            let names: Vec<&str> = declared().map(|param| param.name).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(HttpError::bad_request(format!(
                "unknown query parameter `{}`: this endpoint has {names}",
                shown(&name)
            )));
        };
        let expected = match param.ty {
            _ if value.is_empty() => continue,
            Type::Between(min, max) => {
                let is_valid = value.parse().is_ok_and(|number: i64| (min..=max).contains(&number));
                (!is_valid).then(|| format!("a number from {min} to {max}"))
            }
            Type::Flag => (!matches!(&*value, "true" | "false")).then(|| "`true` or `false`".to_owned()),
            Type::OneOf(words) => (!words.contains(&&*value)).then(|| format!("one of {}", words.join(", "))),
            _ => None,
        };
        if let Some(expected) = expected {
            return Err(HttpError::bad_request(format!(
                "[INVALID_VALUE] invalid value for {name}: {} (must be {expected})",
                shown(&value)
            )));
        }
    }
    Ok(())
}

/// The `pagination.*` parameters of a request.
#[derive(Clone, Debug)]
pub(crate) struct Paging<R> {
    pub(crate) request: PageRequest<R>,
    pub(crate) count_total: bool,
    space: Space,
}

impl<R: Row> Paging<R> {
    /// Reads the limit, then the offset, then the key, so that the error is about the first invalid one.
    pub(crate) fn read(call: &Call<'_>, space: Space) -> Result<Self, HttpError> {
        Self::read_within(call, space, (DEFAULT_LIMIT, MAX_LIMIT))
    }

    /// As [`Self::read`], with another default and another maximum of the limit.
    pub(crate) fn read_within(
        call: &Call<'_>,
        space: Space,
        (default, max): (u64, u64),
    ) -> Result<Self, HttpError> {
        let given = |name| shown(call.first(name).unwrap_or_default());
        let limit = match integer(call, "pagination.limit") {
            None => default,
            Some(limit) => {
                u64::try_from(limit).ok().filter(|limit| (1..=max).contains(limit)).ok_or_else(|| {
                    HttpError::bad_request(format!(
                        "pagination.limit must be between 1 and {max}: got {}",
                        given("pagination.limit")
                    ))
                })?
            }
        };
        let offset = integer(call, "pagination.offset").unwrap_or(0);
        let offset = u64::try_from(offset).map_err(|_| {
            let given = given("pagination.offset");
            HttpError::bad_request(format!("pagination.offset cannot be negative: got {given}"))
        })?;
        let at = match call.first("pagination.key") {
            None => Start::Offset(offset),
            Some(key) => cursor::decode(space, key)
                .map_err(|error| HttpError::bad_request(format!("{error}: got `{}`", shown(key))))?
                .unwrap_or(Start::Offset(offset)),
        };
        let direction = if call.boolean("pagination.reverse", true) {
            Direction::Descending
        } else {
            Direction::Ascending
        };
        let count_total = call.boolean("pagination.count_total", true);
        Ok(Self { request: PageRequest { at, limit, direction }, count_total, space })
    }

    /// Appends the `pagination` object of `page`, with `total` in place of its own if there is one.
    pub(crate) fn write(&self, out: &mut Vec<u8>, page: Page<R>, total: Option<u64>, empty: EmptyCursor) {
        out.extend_from_slice(br#""pagination":{"previous_key":"#);
        self.write_cursor(out, page.previous, empty);
        out.extend_from_slice(br#","next_key":"#);
        self.write_cursor(out, page.next, empty);
        out.extend_from_slice(br#","total":""#);
        let counted = if self.count_total { page.total } else { 0 };
        out.extend_from_slice(itoa::Buffer::new().format(total.unwrap_or(counted)).as_bytes());
        out.extend_from_slice(br#""}"#);
    }

    fn write_cursor(&self, out: &mut Vec<u8>, cursor: Option<Cursor<R>>, empty: EmptyCursor) {
        match (cursor, empty) {
            (Some(cursor), _) => {
                out.push(b'"');
                out.extend_from_slice(cursor::encode(self.space, cursor).as_bytes());
                out.push(b'"');
            }
            (None, EmptyCursor::Null) => out.extend_from_slice(b"null"),
            (None, EmptyCursor::String) => out.extend_from_slice(b"\"\""),
        }
    }
}

/// A number: decimal digits, with or without a sign, within 64 bits. `None` for another text, because the deployed
/// server treats it as absent (Go's `strconv.ParseInt` refuses it). Every interface reads numbers here.
fn integer(call: &Call<'_>, name: &str) -> Option<i64> {
    call.first(name)?.parse().ok()
}

/// The path parameter `height`.
pub(crate) fn height(call: &Call<'_>) -> Result<u64, HttpError> {
    let text = call.text("height");
    let invalid = |what| {
        HttpError::bad_request(format!("[INVALID_VALUE] invalid value for height: {} ({what})", shown(text)))
    };
    let height: i64 = text.parse().map_err(|_| invalid("must be a valid integer"))?;
    u64::try_from(height)
        .ok()
        .filter(|height| *height > 0)
        .ok_or_else(|| invalid("must be a positive integer"))
}

/// A query parameter that is an account, if there is one.
pub(crate) fn optional_account(
    call: &Call<'_>,
    indexer: &Indexer,
    name: &str,
) -> Result<Option<Account>, HttpError> {
    call.first(name).map(|text| address(indexer, name, text)).transpose()
}

/// The path parameter `account`.
pub(crate) fn account(call: &Call<'_>, indexer: &Indexer) -> Result<Account, HttpError> {
    address(indexer, "account", call.text("account"))
}

/// The path parameter `collection_addr`.
pub(crate) fn collection(call: &Call<'_>, indexer: &Indexer) -> Result<Account, HttpError> {
    address(indexer, "collection_addr", call.text("collection_addr"))
}

/// The query parameter `account`, if there is one.
pub(crate) fn account_filter(call: &Call<'_>, indexer: &Indexer) -> Result<Option<Account>, HttpError> {
    optional_account(call, indexer, "account")
}

/// The query parameter `collection_addr`, if there is one.
pub(crate) fn collection_filter(call: &Call<'_>, indexer: &Indexer) -> Result<Option<Account>, HttpError> {
    optional_account(call, indexer, "collection_addr")
}

fn address(indexer: &Indexer, name: &str, text: &str) -> Result<Account, HttpError> {
    let prefix = &indexer.identity.prefix;
    Account::parse(text, prefix).ok_or_else(|| {
        HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for {name}: {} (invalid address format: a bech32 address with the prefix \
             `{prefix}`, or up to 64 hex digits)",
            shown(text)
        ))
    })
}

/// The query parameter `is_signer`.
pub(crate) const fn is_signer(doc: &'static str) -> Param {
    Param::query_or("is_signer", Type::Boolean, "false", doc)
}

/// The list of an account that `is_signer` selects.
pub(crate) fn role(call: &Call<'_>) -> Role {
    if call.boolean("is_signer", false) { Role::Signer } else { Role::Involved }
}

/// The order of a list of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenOrder {
    /// By id.
    Id,
    /// By the height of the last change.
    Height,
}

/// The query parameter `order_by`.
pub(crate) fn token_order(call: &Call<'_>) -> Result<TokenOrder, HttpError> {
    let text = call.first("order_by").unwrap_or("token_id");
    match text.trim().to_ascii_lowercase().as_str() {
        "token_id" => Ok(TokenOrder::Id),
        "height" => Ok(TokenOrder::Height),
        _ => Err(HttpError::bad_request(format!(
            "invalid order_by value '{}', must be one of: token_id, height",
            shown(text)
        ))),
    }
}

/// The path parameter `tx_hash`; `None` for hex that is not a hash.
pub(crate) fn hash(call: &Call<'_>) -> Result<Option<[u8; 32]>, HttpError> {
    let text = call.text("tx_hash");
    chain::hash::parse_hash(text).map_err(|_| {
        HttpError::bad_request(format!(
            "invalid hash format: tx_hash is `{}` (must be hex, with or without 0x)",
            shown(text)
        ))
    })
}

/// The message-type sets that match the query parameter `msgs`, or `None` without a filter. An unknown name matches
/// nothing.
pub(crate) fn sets(call: &Call<'_>, snapshot: &dyn Snapshot) -> Result<Option<Vec<u32>>, HttpError> {
    let types = types(call)?;
    if types.is_empty() {
        return Ok(None);
    }
    msg_sets::containing_any(&types, snapshot).map(Some)
}

/// The message types of the query parameter `msgs`, sorted. The names are separated by commas or repeated, with or
/// without a leading `/`.
pub(crate) fn types(call: &Call<'_>) -> Result<Vec<String>, HttpError> {
    let names = call.all("msgs").flat_map(|value| value.split(',')).map(str::trim);
    let mut types: Vec<String> = names
        .filter(|name| !name.is_empty())
        .map(|name| name.strip_prefix('/').unwrap_or(name).to_owned())
        .collect();
    types.sort_unstable();
    types.dedup();
    if types.len() > MAX_TYPES {
        return Err(HttpError::bad_request(format!(
            "msgs names {} message types, at most {MAX_TYPES} are allowed in one request",
            types.len()
        )));
    }
    match types.iter().find(|name| !name.contains('.') && *name != msg_set::ANY) {
        Some(name) => Err(HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for msgs: {} (must be message types with their packages, such as \
             cosmos.bank.v1beta1.MsgSend)",
            shown(name)
        ))),
        None => Ok(types),
    }
}

/// An expression for the values of `msgs`: between commas, nothing, `*`, or a text with a dot.
pub(crate) const TYPES: &str = r"^\s*(\*|[^,]*\.[^,]*)?(,\s*(\*|[^,]*\.[^,]*)?)*$";

/// The beginning of an invalid value, for an error.
pub(crate) fn shown(value: &str) -> String {
    chain::truncated(value, SHOWN)
}
