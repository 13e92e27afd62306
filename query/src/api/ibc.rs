//! Channels and packets of IBC.

use chain::packet::{End, Found, Side};
use schema::packets::{
    self, AccountPackets, Channel, ChannelKey, Channels, EndPackets, PACKETS, PacketEnd, PacketState,
    PacketsByState,
};
use serde_json::{Map, Value};
use store::{Bounds, Order, Snapshot, Table as _, prefix_end};
use web::call::Call;
use web::endpoint::{Endpoint, Param, Type};
use web::http_error::HttpError;
use web::limits::lane;
use web::reply::Reply;

use super::{ListRequest, Tag, one, tx};
use crate::array::set::{InMemory, Set};
use crate::array::{Array, Run, Stored};
use crate::cursor::{Row, Space, Start};
use crate::filtered_page::filtered_page;
use crate::indexer::{Indexer, View};
use crate::node_text::since;
use crate::packet_record::{Records, STUCK};
use crate::page_writer::PageWriter;
use crate::params::{self, Paging};
use crate::v1::{
    GetIbcChannelResponse, GetIbcPacketResponse, ListIbcChannelsResponse, ListIbcPacketsResponse,
};

const TAG: Tag = Tag("IBC");

const CHANNEL: Param = Param::path_of("channel_id", NAME, "The channel on this chain; in IBC v2 the client.");

/// Names of ICS-24.
const NAME: Type = Type::Pattern(r"^[a-zA-Z0-9.+\-_#<>\[\]]{1,64}$");

const PORT: Param = Param::query("port", PORT_NAME, "The port on this chain; that of the channel if absent.");

const PORT_NAME: Type = Type::Pattern(r"^[a-zA-Z0-9.+\-_#<>\[\]]{0,128}$");

const STATES: [&str; 6] = ["pending", "acknowledged", "failed", "timed_out", STUCK, "received"];

const SIDES: [&str; 2] = ["sent", "received"];

const PACKET_PAGES: Param = Param::Group(&params::checked_pages(Space::Packets, params::MAX_LIMIT));

const CHANNEL_LIST: &[Param] = &[Param::Group(&params::checked_pages(Space::Channels, params::MAX_LIMIT))];

const ONE_CHANNEL: &[Param] = &[CHANNEL, PORT];

const OF_CHANNEL: &[Param] = &[
    CHANNEL,
    PORT,
    Param::query_or("side", Type::OneOf(&SIDES), "sent", "Packets that were sent here, or received."),
    Param::query(
        "state",
        Type::OneOf(&STATES),
        "Of sent packets pending, acknowledged, failed, timed_out or stuck; of received ones received, acknowledged or \
         failed; all if absent.",
    ),
    PACKET_PAGES,
];

const ONE_PACKET: &[Param] = &[
    CHANNEL,
    Param::path_of("sequence", Type::Between(1, i64::MAX), "Number of the packet among those of its source."),
    PORT,
    Param::query("side", Type::OneOf(&SIDES), "Only as it was sent here, or received; both if absent."),
];

const BY_ACCOUNT: &[Param] = &[
    Param::path(
        "account",
        "An address of this chain in bech32 or hex, or one of another chain as packets spell it: sender, receiver, or owner \
         of an interchain account.",
    ),
    Param::query(
        "state",
        Type::OneOf(&STATES),
        "Only this state. Packets are searched for it: a page tests at most 5,000, the total is 0, and while next_key is not \
         null others may follow, also after an empty page. Without pagination.offset.",
    ),
    PACKET_PAGES,
];

const BY_TX: &[Param] =
    &[Param::path_of("tx_hash", params::HASH, "The Cosmos hash in hex, with or without 0x."), PACKET_PAGES];

/// The group's endpoints.
pub(crate) const ENDPOINTS: &[Endpoint<Indexer>] = &[
    TAG.list::<ListIbcChannelsResponse>(
        "/indexer/ibc/v1/channels",
        "Channels of IBC, and clients of IBC v2 that packets passed through. Like all of this group it needs the optional \
         index `packets`: 404 if it is not stored, 503 while it is being built. An unknown parameter is an error in this group.",
        CHANNEL_LIST,
        channels,
    ),
    TAG.list::<GetIbcChannelResponse>(
        "/indexer/ibc/v1/channels/{channel_id}",
        "One channel with the numbers of its packets by state.",
        ONE_CHANNEL,
        channel,
    ),
    TAG.list::<ListIbcPacketsResponse>(
        "/indexer/ibc/v1/channels/{channel_id}/packets",
        "Packets of a channel, in the order in which this chain first saw them.",
        OF_CHANNEL,
        of_channel,
    ),
    TAG.list::<GetIbcPacketResponse>(
        "/indexer/ibc/v1/packets/{channel_id}/{sequence}",
        "One packet by the end on this chain. Both ends of a channel count their packets, so one name may be of two packets.",
        ONE_PACKET,
        by_name,
    ),
    TAG.list::<ListIbcPacketsResponse>(
        "/indexer/ibc/v1/packets/by_account/{account}",
        "Packets whose data names an account.",
        BY_ACCOUNT,
        by_account,
    ),
    TAG.list::<ListIbcPacketsResponse>(
        "/indexer/ibc/v1/packets/by_tx/{tx_hash}",
        "Packets that went a step in a transaction.",
        BY_TX,
        by_tx,
    ),
];

impl Row for ChannelKey {
    fn deployed(_: Space, _: &Map<String, Value>) -> Option<Start<Self>> {
        None
    }
}

/// A request for packets, whose index is complete.
struct Request<'a>(ListRequest<'a, u64>);

impl<'a> Request<'a> {
    fn new(indexer: &'a Indexer, call: &Call<'_>, params: &[Param]) -> Result<Self, HttpError> {
        params::check(call, params)?;
        let list = ListRequest::with(indexer, Paging::read(call, Space::Packets)?)?;
        list.view.require(&PACKETS)?;
        Ok(Self(list))
    }

    fn snapshot(&self) -> &dyn Snapshot {
        self.0.snapshot()
    }

    fn records(&self) -> Result<Records<'_>, HttpError> {
        records(self.0.indexer, &self.0.view)
    }

    fn respond(&self, array: &dyn Array<Row = u64>) -> Result<Reply, HttpError> {
        let records = self.records()?;
        self.0.respond("packets", array, None, |out, numbers| records.write(out, numbers))
    }
}

fn records<'a>(indexer: &'a Indexer, view: &'a View<'_>) -> Result<Records<'a>, HttpError> {
    Ok(Records::new(indexer, view.snapshot(), view.blocks()?.time))
}

fn channels(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    params::check(call, CHANNEL_LIST)?;
    let request = ListRequest::<ChannelKey>::with(indexer, Paging::read(call, Space::Channels)?)?;
    request.view.require(&PACKETS)?;
    let all = Set::<Channels>::all(request.snapshot(), ()).map_err(HttpError::internal)?;
    let records = records(indexer, &request.view)?;
    request.respond("channels", &all, None, |out: &mut PageWriter, keys: &[ChannelKey]| {
        // A row, and the lengths of eight lists and sets.
        lane::spend(keys.len() as u64 * 1024)?;
        for ChannelKey(end) in keys {
            let row =
                packets::channel(request.snapshot(), end).map_err(HttpError::internal)?.unwrap_or_default();
            let record = records.channel(end, &row)?;
            if out.record(&serde_json::to_vec(&record).map_err(HttpError::internal)?)?.is_break() {
                break;
            }
        }
        Ok(())
    })
}

fn channel(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    params::check(call, ONE_CHANNEL)?;
    let view = indexer.view()?;
    view.require(&PACKETS)?;
    let (end, row) = end(view.snapshot(), call)?;
    let record = records(indexer, &view)?.channel(&end, &row)?;
    Ok(one("channel", &serde_json::to_vec(&record).map_err(HttpError::internal)?))
}

/// The channel that the parameters name: the first one if they name no port.
fn end(snapshot: &dyn Snapshot, call: &Call<'_>) -> Result<(End, Channel), HttpError> {
    let (name, port) = (call.text("channel_id"), call.first("port"));
    let prefix = ChannelKey::prefix(name);
    let after = prefix_end(&prefix);
    let bounds = Bounds { start: &prefix, end: after.as_deref() };
    let named = if let Some(port) = port {
        Some(End { port: port.to_owned(), channel: name.to_owned() })
    } else {
        let rows = snapshot.scan(Channels::SPEC, bounds, Order::Asc, 1).map_err(HttpError::internal)?;
        let decoded = rows.first().map(|(key, value)| store::table::decode_row::<Channels>(key, value));
        decoded.transpose().map_err(HttpError::internal)?.map(|(((), ChannelKey(end)), _)| end)
    };
    let found = match named {
        Some(end) => packets::channel(snapshot, &end).map_err(HttpError::internal)?.map(|row| (end, row)),
        None => None,
    };
    let of_port = port.map_or_else(String::new, |port| format!(" of the port {}", params::shown(port)));
    let Some((end, row)) = found else {
        return Err(HttpError::not_found(format!(
            "[NOT_FOUND] channel not found: {}{of_port} (no packet and no event of it is indexed)",
            params::shown(name)
        )));
    };
    Ok((end, row))
}

fn side(call: &Call<'_>) -> Option<Side> {
    call.first("side").map(|side| if side == "received" { Side::Received } else { Side::Sent })
}

fn of_channel(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = Request::new(indexer, call, OF_CHANNEL)?;
    let snapshot = request.snapshot();
    let (end, _) = end(snapshot, call)?;
    let side = side(call).unwrap_or(Side::Sent);
    let own = PacketEnd { side, end: end.clone() };
    let Some(name) = call.first("state") else {
        return request.respond(&Stored::<EndPackets>::all(snapshot, own).map_err(HttpError::internal)?);
    };
    let with = |state| {
        let set = Set::<PacketsByState>::all(snapshot, (own.clone(), state)).map_err(HttpError::internal)?;
        request.respond(&set)
    };
    let allowed: &[&str] = match side {
        Side::Sent => &STATES[..5],
        Side::Received => &["received", "acknowledged", "failed"],
    };
    if !allowed.contains(&name) {
        return Err(HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for state: {name} (must be one of {}, or another side)",
            allowed.join(", ")
        )));
    }
    if matches!(name, "pending" | STUCK) {
        let is_closed = request.records()?.is_closed(&end)?;
        return if is_closed == (name == STUCK) {
            with(PacketState::Pending)
        } else {
            request.respond(&Run::EMPTY)
        };
    }
    let state = PacketState::ALL.into_iter().find(|state| state.name() == name);
    with(state.unwrap_or(PacketState::Pending))
}

fn by_name(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    params::check(call, ONE_PACKET)?;
    let text = call.text("sequence");
    let sequence: u64 = text.parse().ok().filter(|sequence| *sequence > 0).ok_or_else(|| {
        HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for sequence: {} (must be a positive integer)",
            params::shown(text)
        ))
    })?;
    let view = indexer.view()?;
    view.require(&PACKETS)?;
    let (end, _) = end(view.snapshot(), call)?;
    let (records, wanted) = (records(indexer, &view)?, side(call));
    let of = |side: Side| {
        if wanted.is_some_and(|wanted| wanted != side) {
            return Ok(None);
        }
        let found = packets::find(view.snapshot(), side, &end, sequence).map_err(HttpError::internal)?;
        let Some((number, _)) = found else { return Ok(None) };
        Ok::<_, HttpError>(records.packets(&[number])?.pop())
    };
    let response = GetIbcPacketResponse { sent: of(Side::Sent)?, received: of(Side::Received)? };
    if response.sent.is_none() && response.received.is_none() {
        return Err(HttpError::not_found(format!(
            "[NOT_FOUND] packet not found: {sequence} of {}{}",
            params::shown(call.text("channel_id")),
            since(indexer.identity.start_height)
        )));
    }
    Ok(Reply::json(serde_json::to_vec(&response).map_err(HttpError::internal)?))
}

fn by_account(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let request = Request::new(indexer, call, BY_ACCOUNT)?;
    let text = call.text("account");
    let owner = packets::account_key(text, indexer.prefix()).ok_or_else(|| {
        HttpError::bad_request(format!(
            "[INVALID_VALUE] invalid value for account: {} (must be an address of at most 128 bytes)",
            params::shown(text)
        ))
    })?;
    let all = Stored::<AccountPackets>::all(request.snapshot(), owner).map_err(HttpError::internal)?;
    let Some(state) = call.first("state") else { return request.respond(&all) };
    let paging = &request.0.paging.request;
    if matches!(paging.at, Start::Offset(1..)) {
        return Err(HttpError::bad_request(
            "pagination.offset does not go with state, which is searched for: follow next_key",
        ));
    }
    let records = request.records()?;
    let page = filtered_page(&all, paging, |numbers| {
        let found = records.rows(numbers)?;
        let test = |row: &packets::PacketRow| {
            let name = row.packet_state().name();
            if !matches!(state, "pending" | STUCK) || name != "pending" {
                return Ok(name == state);
            }
            let end = End { port: row.source_port.clone(), channel: row.source_channel.clone() };
            Ok(records.is_closed(&end)? == (state == STUCK))
        };
        found.iter().map(test).collect()
    })?;
    request.0.respond_page("packets", page, None, |out, numbers| records.write(out, numbers), b"")
}

fn by_tx(indexer: &Indexer, call: &Call<'_>) -> Result<Reply, HttpError> {
    let unknown =
        || HttpError::not_found(format!("[NOT_FOUND] transaction not found: {}", call.text("tx_hash")));
    let request = Request::new(indexer, call, BY_TX)?;
    let hash = params::hash(call)?.ok_or_else(unknown)?;
    let (_, record) = tx::find(indexer, &request.0.view, &hash, b"")?.ok_or_else(unknown)?;
    lane::spend(record.len() as u64)?;
    let mut numbers = Vec::new();
    for placed in packets::read_tx(&record).map_err(HttpError::internal)? {
        let Found::Packet(packet, step) = placed.found else { continue };
        let side = step.side();
        let found = packets::find(request.snapshot(), side, packet.end(side), packet.sequence);
        numbers.extend(found.map_err(HttpError::internal)?.map(|(number, _)| number));
    }
    numbers.sort_unstable();
    numbers.dedup();
    request.respond(&InMemory(numbers.iter().collect()))
}
