//! Channels of IBC, one with its packets, and one packet with its steps.

use http::StatusCode;
use maud::{Markup, html};
use web::call::Call;
use web::endpoint::{Param, Type};
use web::http_error::HttpError;

use super::packets;
use crate::explorer::Explorer;
use crate::format::{block, cell, clipped, count, none, pre, text, time, tx, whole_time};
use crate::layout::Page;
use crate::layout::{absent, empty, facts, section, table};
use crate::listing::{KEY, Listing};
use crate::target::{Target, encoded};
use crate::view::{Response, View};
use query::v1::{
    GetIbcChannelResponse, GetIbcPacketResponse, IbcChannel, IbcPacket, IbcPacketName, IbcPacketStage,
};

const PORT: Param = Param::query("port", Type::String, "The port; that of the channel if absent.");

/// States of packets by the side of this chain, with what a reader calls them.
const STATES: [(&str, &[&str]); 2] = [
    ("sent", &["pending", "acknowledged", "failed", "timed_out", "stuck"]),
    ("received", &["received", "acknowledged", "failed"]),
];

pub(crate) struct ChannelsPage;

impl View for ChannelsPage {
    const PATH: &'static str = "/ibc";
    const SUMMARY: &'static str = "All channels of IBC.";
    const PARAMS: &'static [Param] = &[KEY];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let list = Target::new("/indexer/ibc/v1/channels").with("pagination.reverse", "false");
        let title = "IBC channels";
        let channels = match Listing::<IbcChannel>::read(explorer, call, list) {
            Err(error) if error.status() == StatusCode::NOT_FOUND => return Ok(absent(title, &error).into()),
            channels => channels?,
        };
        let row = |of: &IbcChannel| {
            let packets = of.packets.unwrap_or_default();
            let number = |number: u64| html! { span.num { (count(number)) } };
            vec![
                html! { a.mono href=(channel(&of.channel_id, &of.port_id)) { (of.channel_id) } },
                cell(&of.port_id),
                counterparty(of),
                channel_state(of),
                number(packets.sent),
                number(packets.received),
                number(packets.pending + packets.stuck),
                of.oldest_pending.as_ref().map_or_else(none, |oldest| time(&oldest.timestamp)),
            ]
        };
        let rows: Vec<_> = channels.rows.iter().map(row).collect();
        let columns = ["Channel", "Port", "~Other end", "State", ">Sent", ">Received", ">Waiting", "~Since"];
        let body = html! {
            section.card {
                @if rows.is_empty() {
                    (empty("No packet and no event of a channel is indexed."))
                } @else {
                    (table("Channels", &columns, &rows, ""))
                    (channels.pager(&Target::new(Self::PATH)))
                }
            }
        };
        let title = title.to_owned();
        Ok(Page { title, about: String::new(), body, requests: vec![channels.request] }.into())
    }
}

/// The page of a channel.
fn channel(channel: &str, port: &str) -> String {
    let target = Target::new(format!("/ibc/{}", encoded(channel)));
    target.with_some("port", Some(port).filter(|port| !port.is_empty())).into_string()
}

fn counterparty(of: &IbcChannel) -> Markup {
    let end = of.counterparty.clone().unwrap_or_default();
    cell(&[end.port_id, end.channel_id].join("/"))
}

fn channel_state(of: &IbcChannel) -> Markup {
    match &*of.state {
        "STATE_OPEN" => html! { span.badge.good { "Open" } },
        "STATE_CLOSED" => html! { span.badge.bad { "Closed" } },
        // A client of IBC v2 has no state.
        "" if of.port_id.is_empty() => none(),
        "" => html! { span.badge.none { "Unknown" } },
        other => html! { span.badge.none { (chain::truncated(other, 20)) } },
    }
}

pub(crate) struct ChannelPage;

impl View for ChannelPage {
    const PATH: &'static str = "/ibc/{channel}";
    const SUMMARY: &'static str = "One channel of IBC with its packets.";
    const PARAMS: &'static [Param] = &[
        Param::path("channel", "A channel of this chain."),
        PORT,
        Param::query("side", Type::OneOf(&["sent", "received"]), "Sent if absent."),
        Param::query("state", Type::String, "Only packets in this state."),
        KEY,
    ];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let (name, port) = (call.text("channel"), call.first("port"));
        let (side, state) = (call.first("side").unwrap_or("sent"), call.first("state"));
        let path = format!("/indexer/ibc/v1/channels/{}", encoded(name));
        let request = Target::new(path.clone()).with_some("port", port).into_string();
        let of = explorer.read::<GetIbcChannelResponse>(&request)?.channel.unwrap_or_default();
        let list = Target::new(path + "/packets").with_some("port", port).with("side", side);
        let packets = Listing::<IbcPacket>::read(explorer, call, list.with_some("state", state))?;
        let page = Target::new(format!("/ibc/{}", encoded(name))).with_some("port", port).with("side", side);
        let numbers = of.packets.unwrap_or_default();
        let number = |number: u64| html! { (count(number)) };
        let body = html! {
            section.card {
                (facts(vec![
                    ("Port", text(&of.port_id)),
                    ("Other end", counterparty(&of)),
                    ("State", channel_state(&of)),
                    ("Connection", text(&of.connection_id)),
                    ("Client", text(&of.client_id)),
                    ("Ordering", text(&of.ordering)),
                    ("Version", text(&of.version)),
                    ("Sent", number(numbers.sent)),
                    ("Received", number(numbers.received)),
                    ("Pending", number(numbers.pending)),
                    ("Stuck", number(numbers.stuck)),
                    ("Failed", number(numbers.failed)),
                    ("Timed out", number(numbers.timed_out)),
                    ("Not acknowledged here", number(numbers.unacknowledged)),
                    ("Waits for the longest time", of.oldest_pending.as_ref().map_or_else(none, |oldest| html! {
                        a.num href=(packets::page(&of.channel_id, &of.port_id, oldest.sequence)) { (oldest.sequence) }
                        " · " (time(&oldest.timestamp))
                    })),
                ]))
            }
            (section("Packets", &html! {
                (filters(&of, side, state))
                (packets::rows(explorer, &packets.rows, false))
                (packets.pager(&page.with_some("state", state)))
            }))
        };
        let title = format!("Channel {}", chain::truncated(name, 64));
        Ok(Page { title, about: of.port_id.clone(), body, requests: vec![request, packets.request] }.into())
    }
}

/// Links to the lists of a channel.
fn filters(of: &IbcChannel, side: &str, state: Option<&str>) -> Markup {
    let page =
        |side: &str| Target::new(channel(&of.channel_id, "")).with("port", &of.port_id).with("side", side);
    html! {
        @for (other, states) in STATES {
            p {
                a href=(page(other).into_string()) aria-current=[(other == side && state.is_none()).then_some("true")] {
                    @if other == "sent" { "All sent" } @else { "All received" }
                }
                @for name in states {
                    " · "
                    a href=(page(other).with("state", name).into_string())
                        aria-current=[(other == side && state == Some(*name)).then_some("true")] { (packets::words(name)) }
                }
            }
        }
    }
}

pub(crate) struct PacketPage;

impl View for PacketPage {
    const PATH: &'static str = "/ibc/{channel}/{sequence}";
    const SUMMARY: &'static str = "One packet of IBC with its steps.";
    const PARAMS: &'static [Param] = &[
        Param::path("channel", "A channel of this chain."),
        Param::path("sequence", "The number of the packet."),
        PORT,
    ];

    fn respond(explorer: &Explorer, call: &Call<'_>) -> Result<Response, HttpError> {
        let (name, sequence) = (call.text("channel"), call.text("sequence"));
        let path = format!("/indexer/ibc/v1/packets/{}/{}", encoded(name), encoded(sequence));
        let request = Target::new(path).with_some("port", call.first("port")).into_string();
        let GetIbcPacketResponse { sent, received } = explorer.read(&request)?;
        let body = html! {
            @if let Some(of) = &sent { (section("Sent here", &whole(explorer, of))) }
            @if let Some(of) = &received { (section("Received here", &whole(explorer, of))) }
        };
        let title = format!("Packet {}", chain::truncated(sequence, 20));
        Ok(Page { title, about: format!("of {}", chain::truncated(name, 64)), body, requests: vec![request] }
            .into())
    }
}

fn whole(explorer: &Explorer, of: &IbcPacket) -> Markup {
    let data = of.data.clone().unwrap_or_default();
    let end = |port: &str, channel: &str| text(&[port, channel].join("/"));
    let name = |of: &Option<IbcPacketName>| {
        of.as_ref().map_or_else(none, |of| {
            html! { a href=(packets::page(&of.channel_id, &of.port_id, of.sequence)) { (of.channel_id) " " (of.sequence) } }
        })
    };
    let timeout_time = i64::try_from(of.timeout_timestamp).ok().filter(|nanos| *nanos > 0);
    let timeout_time =
        timeout_time.map_or_else(none, |nanos| whole_time(&chain::Timestamp::from_unix_nanos(nanos).nanos()));
    let steps = [
        ("Sent", &of.send),
        ("Received", &of.receive),
        ("Acknowledgement written", &of.write_acknowledgement),
        ("Acknowledged", &of.acknowledge),
        ("Timed out", &of.timeout),
    ];
    let step = |(name, stage): (&str, &IbcPacketStage)| {
        vec![
            html! { (name) },
            block(stage.height),
            if stage.txhash.is_empty() {
                html! { span.none { "the block itself" } }
            } else {
                tx(&stage.txhash)
            },
            time(&stage.timestamp),
        ]
    };
    let taken = steps.into_iter().filter_map(|(name, stage)| Some((name, stage.as_ref()?)));
    let rows: Vec<_> = taken.map(step).collect();
    html! {
        (facts(vec![
            ("State", packets::state(&of.state)),
            ("Reason", text(&of.error)),
            ("From", end(&of.source_port, &of.source_channel)),
            ("To", end(&of.destination_port, &of.destination_channel)),
            ("Channel", { let (port, name) = packets::own_end(of); html! { a href=(channel(name, port)) { (name) } } }),
            ("Content", packets::content(explorer, &data)),
            ("Sender", packets::party(explorer, &data.sender)),
            ("Receiver", packets::party(explorer, &data.receiver)),
            ("Denom", text(&data.denom)),
            ("Denom here", text(&data.local_denom)),
            ("Amount", text(&data.amount)),
            ("Timeout height", text(&of.timeout_height)),
            ("Timeout", timeout_time),
            ("Forwarded by", name(&of.forwarded_to)),
            ("Forwards", name(&of.forwarded_from)),
        ]))
        (table("Steps", &["Step", "Height", "Transaction", "Time"], &rows, "No step is indexed."))
        @if of.timeout_passed == Some(true) {
            p.dim { "Its timeout has passed by the clock of this chain: it can be timed out unless the other chain has received it." }
        }
        @if !data.memo.is_empty() { h3 { "Memo" } (pre(&clipped(&data.memo))) }
    }
}
