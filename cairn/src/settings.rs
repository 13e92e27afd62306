//! Configuration: one clap struct, filled from a TOML file, environment variables and flags.
//!
//! | module | purpose |
//! |---|---|
//! | `configs` | the configurations of indexer, node clients and servers that follow |
//! | [`values`] | texts of the settings with their sources, and configuration errors |
//! | [`sources`] | groups of settings as flags of commands; merging of the sources |
//! | `location` | where the databases are |
//! | `file` | the configuration file |
//! | [`rollytics`] | environment variables of rollytics |
//! | `parse` | parsers of values |
//! | [`mod@print`] | `cairn config` and the example file |
//!
//! # Invariants
//! * [`Settings`] is the only list of the settings. Flags, variables, keys of the file, help, `cairn config` and the
//!   example file derive from it.
//! * Precedence: variables of rollytics < file < environment < flags. The same code parses the values of every source.

mod configs;
mod file;
mod location;
mod parse;
pub(crate) mod print;
pub(crate) mod rollytics;
pub(crate) mod sources;
#[cfg(test)]
mod tests;
pub(crate) mod values;

use std::net::SocketAddr;
use std::path::PathBuf;

use bytesize::ByteSize;
use chain::Vm;
use clap::builder::NonEmptyStringValueParser;
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, Args, Command, FromArgMatches as _};
use evm_rpc::{Dialect, ForwardAt, Frames, Group};
use explorer::media::Media;
use humantime::Duration as Time;
use ingest::Verify;
use ipnet::IpNet;
use node::Url;
use query::EmptyCursor;
use schema::index::Index;
use web::cors::Cors;
use web::limits::Rate;

pub(crate) use self::configs::RouteSettings;
pub(crate) use self::location::Location;
use self::parse::{Evm, TrackRate};
pub(crate) use self::parse::{LogFormat, dialect, index, path};
use self::values::{Error, Values, env_of, flag_of, missing};

/// The effective settings. The id of a field is its key in the file, `section.key` in a section; flag and variable are
/// other spellings of it. Settings of a section are last, because TOML needs that.
#[derive(Args, Clone, Debug)]
pub(crate) struct Settings {
    /// Directory of the database, on a local disk; created if it does not exist. One process writes it, any number of
    /// `cairn query` follow it. With the cargo feature `slate` also an object store, as in s3://bucket/prefix: the
    /// database is below it, in a folder with the name of the chain.
    #[arg(value_name = "DIR", value_parser = parse::path)]
    pub(crate) data: Option<PathBuf>,
    /// For `cairn query`, in place of `data`: the databases of several chains, as in
    /// `rollup-1=/var/lib/rollup-1,rollup-2=s3://bucket/prefix`. Each is served below `/c/` and its id; requests that
    /// name no chain are for the first one.
    #[arg(value_name = "ID=LOCATION", value_parser = parse::location)]
    pub(crate) chains: Vec<(String, PathBuf)>,
    /// Host names of these chains, as in `one.example=rollup-1`: requests to them need no prefix.
    #[arg(value_name = "HOST=ID", value_parser = parse::pair)]
    pub(crate) hosts: Vec<(String, String)>,
    /// IP address and port of the JSON interface; port 0 takes a free one.
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:8080", value_parser = parse::address)]
    pub(crate) listen: SocketAddr,
    /// IP address and port of the gRPC interface; port 0 takes a free one. Without it there is none. It has its own
    /// connections, requests and rates, with the limits of the JSON interface.
    #[arg(value_name = "ADDR", value_parser = parse::address)]
    pub(crate) grpc_listen: Option<SocketAddr>,
    /// IP address and port of CometBFT's `tx`, `tx_search` and `block_search` over the index, for clients that search a node for
    /// transactions; port 0 takes a free one. Without it there are none. It has its own connections, requests and rates, with the
    /// limits of the JSON interface.
    #[arg(value_name = "ADDR", value_parser = parse::address)]
    pub(crate) comet_listen: Option<SocketAddr>,
    /// IP address and port of Ethereum's JSON-RPC over the index of an EVM chain, HTTP and WebSocket; port 0 takes a free one.
    /// Without it there is none. It has its own connections, requests and rates, with the limits of the JSON interface.
    #[arg(value_name = "ADDR", value_parser = parse::address)]
    pub(crate) evm_listen: Option<SocketAddr>,
    /// Replies of Ethereum's JSON-RPC: fixed, as Ethereum has them, or node, with the deviations of minievm (`logIndex` by
    /// transaction, chain id of Cosmos transactions, errors for unknown blocks).
    #[arg(value_name = "FORM", default_value = "fixed", value_parser = parse::dialect)]
    pub(crate) evm_replies: Dialect,
    /// Calls of Ethereum's JSON-RPC that are forwarded to a node, separated by commas: state (calls, balances, fees), send
    /// (signed transactions), trace, pending (the mempool). None by default; they are refused.
    #[arg(value_name = "GROUP", value_parser = parse::group)]
    pub(crate) evm_forward: Vec<Group>,
    /// EVM JSON-RPC of the nodes that these calls are forwarded to; by default `json_rpc`.
    #[arg(value_name = "URL")]
    pub(crate) evm_forward_to: Vec<Url>,
    /// Folder with the build of Otterscan, whose pages `GET` requests to Ethereum's JSON-RPC get. Without it there are none.
    #[arg(value_name = "DIR", value_parser = parse::path)]
    pub(crate) otterscan: Option<PathBuf>,
    /// Symbol of the chain's native currency on these pages, for example GAS; by default `native`.
    #[arg(value_name = "SYMBOL", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) evm_currency: Option<String>,
    /// Calls of a transaction in `ots_traceTransaction` and `ots_getInternalOperations`: node, all below the user's own, or clean,
    /// without those by which the chain itself moves a native value.
    #[arg(value_name = "WHICH", default_value = "node", value_parser = parse::frames)]
    pub(crate) evm_frames: Frames,
    /// Whether clients of Ethereum's JSON-RPC may open filters (`eth_newFilter` and its relatives). They are in the memory of one
    /// process: behind several, clients need the same one for all of their calls.
    #[arg(value_name = "BOOL", default_value = "false", value_parser = parse::boolean, action = ArgAction::Set)]
    pub(crate) evm_filters: bool,
    /// Folder of known contracts, a file `<address>.json` for each: its ABI, the artifact of a compiler, or a contract of
    /// Sourcify's API. Etherscan's API, on the address of `evm_listen`, has ABIs, sources and names of functions from it.
    #[arg(value_name = "DIR", value_parser = parse::path)]
    pub(crate) abi: Option<PathBuf>,
    /// Server of Sourcify's API that Etherscan's API asks for contracts that `abi` lacks, and that verifies contracts for it,
    /// for example `https://sourcify.dev/server`. It must know the chain. None by default.
    #[arg(value_name = "URL")]
    pub(crate) sourcify: Option<Url>,
    /// The block of forwarded calls that name none, or the latest one: node, for that of the node, or index, for the last one that
    /// is indexed.
    #[arg(value_name = "BLOCK", default_value = "node", value_parser = parse::forward_at)]
    pub(crate) evm_forward_at: ForwardAt,
    /// IP address and port of the metrics in Prometheus' text form, at /metrics; without it there are none.
    #[arg(value_name = "ADDR", value_parser = parse::address)]
    pub(crate) metrics: Option<SocketAddr>,
    /// URL of the OpenTelemetry collector that gets spans by OTLP over gRPC, http:// only; without it there are none.
    /// Needs a program that was built with the cargo feature `otlp`.
    #[arg(value_name = "URL", value_parser = parse::collector)]
    otlp_endpoint: Option<String>,
    /// The chain's id. A node or a database of another chain is refused.
    #[arg(value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) chain_id: Option<String>,
    /// The chain's virtual machine: evm, move, wasm or none.
    #[arg(value_name = "VM")]
    pub(crate) vm: Option<Vm>,
    /// The software of the chain's EVM: minievm, cosmos-evm, ethermint, or auto, for the one that the chain's messages name.
    #[arg(value_name = "NAME", default_value = "auto", value_parser = parse::evm)]
    pub(crate) evm: Evm,
    /// CometBFT RPC of the node, http:// or https://. Several addresses, separated by commas and in order of
    /// preference, replace each other when one fails; the same holds for the other services.
    #[arg(value_name = "URL")]
    pub(crate) comet: Vec<Url>,
    /// Cosmos REST of the node.
    #[arg(value_name = "URL")]
    pub(crate) rest: Vec<Url>,
    /// EVM JSON-RPC of the node; required with `vm = "evm"`. Internal transactions need its `debug` methods.
    #[arg(value_name = "URL")]
    pub(crate) json_rpc: Vec<Url>,
    /// Cosmos gRPC of the node: a second source of the chain's protobuf descriptors.
    #[arg(value_name = "URL")]
    pub(crate) grpc: Vec<Url>,
    /// Human-readable part of account addresses; by default the node's reply, and never another than that.
    #[arg(value_name = "TEXT", value_parser = parse::prefix)]
    pub(crate) prefix: Option<String>,
    /// First height to index, 1 or more; by default the first that the node has. Fixed once the database is created.
    #[arg(value_name = "HEIGHT", value_parser = parse::number::<u64>("1", parse::MAX))]
    pub(crate) start_height: Option<u64>,
    /// Indexes internal transactions on an EVM chain: true or false.
    #[arg(value_name = "BOOL", default_value = "true", value_parser = parse::boolean, action = ArgAction::Set)]
    pub(crate) internal_txs: bool,
    /// Keeps the holders of every ERC-20 on an EVM chain, by amount: true or false. Needs `rest`, and a node that has
    /// the state of the first height.
    #[arg(value_name = "BOOL", default_value = "true", value_parser = parse::boolean, action = ArgAction::Set)]
    pub(crate) rich_list: bool,
    /// Optional indexes that are written, separated by commas, or none; names replace the default, which takes no room on a chain
    /// without IBC and without a bridge. Each that is new is built from the stored blocks while the program runs; one that is no longer named stays as it
    /// is until `cairn db drop-index` removes it.
    #[arg(value_name = "NAME", default_values = ["bridge", "packets"], value_parser = index)]
    pub(crate) index: Vec<&'static Index>,
    /// Time within which an ERC-20 that a block touches is compared with the replies of its contract, 1s to 24h, or 0s for
    /// never; of a token that differs, all holders are compared. In the same time 16 tokens of the index `tokens` are asked for
    /// another name.
    #[arg(value_name = "TIME", default_value = "60s", value_parser = parse::time("0s", "24h"))]
    pub(crate) reconcile: Time,
    /// Number of heights that are fetched concurrently while catching up, 1 to 1024: more keep a distant node busy and
    /// take more memory.
    #[arg(value_name = "HEIGHTS", default_value = "32", value_parser = parse::number::<usize>("1", "1024"))]
    pub(crate) look_ahead: usize,
    /// Interval between requests for a new block at the head of the chain, 10ms to 60s.
    #[arg(value_name = "TIME", default_value = "250ms", value_parser = parse::time("10ms", "60s"))]
    pub(crate) poll: Time,
    /// Checks of the node's replies before they are committed: off (parents only), hashes (headers, transactions,
    /// results and receipts against each other), or signatures (the validators' too).
    #[arg(value_name = "CHECKS", default_value = "hashes", value_parser = parse::verify)]
    verify: Verify,
    /// With `verify = "signatures"`: a trusted block, from which on the validators are trusted; by default the first
    /// block that is fetched. An error with other checks, which do not use it.
    #[arg(value_name = "HEIGHT:HASH", value_parser = parse::block)]
    trusted: Option<(u64, [u8; 32])>,
    /// Maximum number of blocks that are rolled back if the node follows another history; beyond it the program stops
    /// with an error.
    #[arg(value_name = "BLOCKS", default_value = "10000", value_parser = parse::number::<u64>("0", parse::MAX))]
    pub(crate) max_rewind: u64,
    /// Age of the blocks that can be rolled back, 1m to 30d: the undo log keeps what their commits have changed. Beyond it a
    /// backup must be restored, or the chain indexed again.
    #[arg(value_name = "TIME", default_value = "24h", value_parser = parse::time("1m", "30d"))]
    undo_horizon: Time,
    /// Maximum bytes of the undo log of blocks, and of that of internal transactions, 1MiB to 1TiB: with more, it reaches
    /// back less far than `undo_horizon`.
    #[arg(value_name = "BYTES", default_value = "1GiB", value_parser = parse::size("1MiB", "1TiB"))]
    undo_bytes: ByteSize,
    /// Memory for blocks of the database, 8MiB to 1TiB: a number of bytes, or of KiB, MiB, GiB or TiB.
    #[arg(value_name = "BYTES", default_value = "256MiB", value_parser = parse::size("8MiB", "1TiB"))]
    cache: ByteSize,
    /// Bytes of the file system that are left free: below it nothing is indexed and no transfer is followed, the
    /// database is still served, and both continue as soon as there is space.
    #[arg(value_name = "BYTES", default_value = "512MiB", value_parser = parse::size("0", "1PiB"))]
    pub(crate) disk_reserve: ByteSize,
    /// Maximum of open client connections, 1 to 1000000; further ones wait. Each needs a file descriptor. One address
    /// gets an eighth of them, but at least 16.
    #[arg(value_name = "NUMBER", default_value = "4096", value_parser = parse::number::<usize>("1", "1000000"))]
    max_connections: usize,
    /// Maximum of concurrent requests, 1 to 1000000; further ones are refused with 503. Unread answers count. One client
    /// gets an eighth of them, but at least 16, and beyond it 429.
    #[arg(value_name = "NUMBER", default_value = "1024", value_parser = parse::number::<usize>("1", "1000000"))]
    max_requests: usize,
    /// Memory of the responses that wait to be read, such as 256MiB, of each server. One client may have as many bytes as
    /// are free, so one has half of them at most; beyond it, it gets 429, or 503 if others have them.
    #[arg(value_name = "BYTES", default_value = "256MiB", value_parser = parse::size("1MiB", "1TiB"))]
    max_response_memory: ByteSize,
    /// Maximum of open event streams, 0 to 1000000; further ones are refused with 503. Each holds one of
    /// `max_connections`.
    #[arg(value_name = "NUMBER", default_value = "2048", value_parser = parse::number::<usize>("0", "1000000"))]
    max_streams: usize,
    /// Maximum of open event streams of one client, 0 to 1000000, beyond which it gets 429.
    #[arg(value_name = "NUMBER", default_value = "64", value_parser = parse::number::<usize>("0", "1000000"))]
    max_client_streams: usize,
    /// Requests a second of one client, beyond which it gets 429, as 50/s, or with a burst after an idle time as
    /// 50/s:200; unlimited by default. A client is an IPv4 address or an IPv6 network of 64 bits.
    #[arg(value_name = "RATE", value_parser = parse::rate)]
    rate_limit: Option<Rate>,
    /// Addresses of trusted proxies, or networks of them: their requests count for the client in X-Forwarded-For, and
    /// their connections are not limited. The header is ignored from other addresses, and a proxy that is not listed
    /// counts as one client.
    #[arg(value_name = "IP", value_parser = parse::proxy)]
    trusted_proxies: Vec<IpNet>,
    /// Number of blocks that the index may be behind the node while /readyz answers 200; beyond it, 503. Not for
    /// `cairn query`: it asks no node, and is ready while it keeps up with the database, even if no process writes it
    /// any more.
    #[arg(value_name = "BLOCKS", default_value = "50", value_parser = parse::number::<u64>("0", parse::MAX))]
    pub(crate) ready_lag: u64,
    /// Web pages that may read the responses: `*` for all, `none`, or origins such as `https://app.example` and
    /// `https://*.example.com`.
    #[arg(id = "cors", value_name = "ORIGIN", default_value = "*")]
    origins: Vec<String>,
    /// Images of NFTs on the explorer's pages: none, data, for those that are in the URI of a token, or the address of an IPFS gateway,
    /// such as `https://ipfs.io`, from which browsers then also load those on IPFS. The program itself fetches none.
    #[arg(value_name = "WHICH", default_value = "none")]
    pub(crate) nft_media: Media,
    /// Serves the explorer's pages at `/`, beside the JSON interfaces: true or false.
    #[arg(value_name = "BOOL", default_value = "true", value_parser = parse::boolean, action = ArgAction::Set)]
    pub(crate) explorer: bool,
    /// Minimum level of log lines: error, warn, info, debug or trace, also by module, as in `info,ingest=debug`.
    #[arg(value_name = "FILTER", default_value = "info", value_parser = parse::log_filter)]
    pub(crate) log: String,
    /// Format of the log, which goes to standard error: text or json.
    #[arg(value_name = "FORMAT", default_value = "text", value_parser = parse::log_format)]
    pub(crate) log_format: LogFormat,
    /// Form of the cursor of a page that does not exist, next or previous: `null` as deployed servers do, or `string`
    /// for an empty string as in the published interface.
    #[arg(id = "pagination.empty_cursor", value_name = "FORM", default_value = "null", value_parser = parse::cursor)]
    pub(crate) empty_cursor: EmptyCursor,
    /// Maximum bytes of the rows of a page, such as 8MiB; a page with more ends earlier, with a cursor to the rest. A
    /// single row may be larger.
    #[arg(
        id = "pagination.max_bytes", value_name = "BYTES", default_value = "8MiB",
        value_parser = parse::size("64KiB", "1GiB"),
    )]
    pub(crate) page_bytes: ByteSize,
    /// REST addresses of the layer one of a rollup, or addresses of a cairn that indexes it: with the index `bridge`, what they say of
    /// the outputs and claims of the rollup's bridge, and proofs of withdrawals against those outputs. Without it withdrawals have no
    /// proofs.
    #[arg(id = "bridge.l1", value_name = "URL")]
    bridge_l1: Vec<Url>,
    /// Interval between requests to the layer one for new outputs, 1s to 1h.
    #[arg(id = "bridge.poll", value_name = "TIME", default_value = "5s", value_parser = parse::time("1s", "1h"))]
    bridge_poll: Time,
    /// Directory of a registry: chains, assets, channels, bridges. `cairn route` requires it, and with it `cairn run`
    /// plans and follows transfers as well. Read again on SIGHUP.
    #[arg(id = "route.registry", value_name = "DIR", value_parser = parse::path)]
    route_registry: Option<PathBuf>,
    /// Directory of the database of tracked transfers, created if it does not exist; `cairn run` requires it with
    /// `route.registry`, for `cairn route` it is cairn-route by default.
    #[arg(id = "route.data", value_name = "DIR", value_parser = parse::path)]
    route_data: Option<PathBuf>,
    /// IP address and port of the routing interface; port 0 takes a free one.
    #[arg(id = "route.listen", value_name = "ADDR", default_value = "127.0.0.1:8081", value_parser = parse::address)]
    route_listen: SocketAddr,
    /// How long a tracked transfer is kept after its last change, once it has ended: 1h to 3650d.
    #[arg(id = "route.retention", value_name = "TIME", default_value = "30d")]
    #[arg(value_parser = parse::time("1h", "3650d"))]
    retention: Time,
    /// Requests a second of one client to /v2/tx/track, beyond which it gets 429, in the form of `rate_limit`, which
    /// holds as well; `off` for no such limit.
    #[arg(id = "route.track_rate", value_name = "RATE", default_value = "5/s:50", value_parser = parse::track_rate)]
    track_rate: TrackRate,
    /// Relays transactions that clients have signed, at /v2/tx/submit, to a node of their chain: true or false.
    /// Clients of
    /// `@skip-go/client` send Cosmos transactions so. `route.track_rate` holds for it as well.
    #[arg(id = "route.submit", value_name = "BOOL", default_value = "false")]
    #[arg(value_parser = parse::boolean, action = ArgAction::Set)]
    submit: bool,
    /// Address of a price feed with the interface of CoinGecko's API, such as `https://api.coingecko.com/api/v3`: it is
    /// asked for the tokens with a `coingecko_id` and without a price in the registry. Without it there are only the
    /// registry's prices.
    #[arg(id = "route.price_feed", value_name = "URL")]
    price_feed: Option<Url>,
    /// Age up to which a price of the feed is used, 3m to 7d; the feed is asked at a sixth of it.
    #[arg(id = "route.price_max_age", value_name = "TIME", default_value = "30m")]
    #[arg(value_parser = parse::time("3m", "7d"))]
    price_max_age: Time,
    /// Maximum of registered transactions of one client that no node has seen, 1 to 1000000, beyond which it gets 429.
    /// They are abandoned 5 minutes after registration, or after 24 hours where no node answers, and deleted an hour
    /// later.
    #[arg(id = "route.unseen_per_client", value_name = "MAX", default_value = "100")]
    #[arg(value_parser = parse::number::<usize>("1", "1000000"))]
    unseen_per_client: usize,
    /// The same for all clients together on one chain. Beyond it, one that was abandoned is deleted, and if there is
    /// none the response is 429.
    #[arg(id = "route.unseen_per_chain", value_name = "MAX", default_value = "10000")]
    #[arg(value_parser = parse::number::<usize>("1", "1000000"))]
    unseen_per_chain: usize,
    /// `origins`, parsed.
    #[arg(skip)]
    pub(crate) cors: Cors,
    /// The settings that come from variables of rollytics.
    #[arg(skip)]
    pub(crate) from_rollytics: Vec<String>,
}

/// The argument of every setting, with its flag and its variable.
fn args() -> Vec<Arg> {
    let list = Settings::augment_args(Command::new("settings"));
    let named = |arg: &Arg| {
        let name = arg.get_id().as_str();
        // The value of a variable may hold a password, so the help does not show it.
        arg.clone().long(flag_of(name)).num_args(1).env(env_of(name)).hide_env_values(true)
    };
    list.get_arguments().map(named).collect()
}

impl Settings {
    /// Parses `values`, which contain the defaults.
    pub(crate) fn new(values: &Values) -> Result<Self, Error> {
        // A flag cannot give an empty list.
        let is_none = |name, texts: &[String]| name == "index" && texts == ["none"];
        let given = values.iter().filter(|(name, value)| !is_none(*name, &value.texts));
        let words = given.flat_map(|(name, value)| {
            value.texts.iter().map(move |text| format!("--{}={text}", flag_of(name)))
        });
        // `values` already contains the variables that the command accepts, and the defaults; a list without values is empty.
        let bare = args().into_iter().map(|arg| arg.env(None).default_value(None::<&str>));
        let command = Command::new("settings").no_binary_name(true).args(bare);
        let parsed = command.try_get_matches_from(words).and_then(|matches| Self::from_arg_matches(&matches));
        let mut settings = parsed.map_err(|error| invalid(values, &error))?;
        settings.from_rollytics = rollytics::taken(values);
        let origins: &[String] = if settings.origins == ["none"] { &[] } else { &settings.origins };
        settings.cors = Cors::origins(origins)
            .map_err(|error| values::bad(values, "cors", format!("{error}, or `none`")))?;
        if settings.route_registry.is_some() && settings.route_data.is_none() {
            return Err(missing("route.data"));
        }
        Ok(settings)
    }
}

/// The error of the parser, with the source of the value instead of the flag that clap names. It does not repeat the
/// value, which the parsers do unless it is secret.
fn invalid(values: &Values, error: &clap::Error) -> Error {
    // The parsers of clap that reject an empty text give no reason.
    let empty = || "the value is empty".to_owned();
    let reason = std::error::Error::source(error).map_or_else(empty, ToString::to_string);
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else { return Error(reason) };
    let flag = arg.trim_start_matches('-').split(' ').next().unwrap_or_default();
    match values.keys().find(|name| flag_of(name) == flag) {
        Some(name) => values::bad(values, name, reason),
        None => Error(reason),
    }
}
