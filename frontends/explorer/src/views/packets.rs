//! Packets of IBC as rows, links and texts.

use maud::{Markup, html};
use query::v1::{IbcPacket, IbcPacketData};

use crate::explorer::Explorer;
use crate::format::{account, block, cell, coin, none, short, time};
use crate::layout::table;
use crate::target::{Target, encoded};

/// The page of a packet.
pub(super) fn page(channel: &str, port: &str, sequence: u64) -> String {
    let target = Target::new(format!("/ibc/{}/{sequence}", encoded(channel)));
    target.with_some("port", Some(port).filter(|port| !port.is_empty())).into_string()
}

/// The number of a packet; a link if the index has it.
pub(super) fn named(is_known: bool, channel: &str, port: &str, sequence: u64) -> Markup {
    html! {
        @if is_known { a.num href=(page(channel, port, sequence)) { (sequence) } } @else { (sequence) }
    }
}

/// Port and channel of a packet on this chain.
pub(super) fn own_end(of: &IbcPacket) -> (&str, &str) {
    // A client of IBC v2 has no port as a channel.
    let port = |port| if of.version == 1 { port } else { "" };
    if of.side == "sent" {
        (port(&of.source_port), &of.source_channel)
    } else {
        (port(&of.destination_port), &of.destination_channel)
    }
}

/// What a packet transports.
pub(super) fn content(explorer: &Explorer, data: &IbcPacketData) -> Markup {
    match &*data.r#type {
        // A packet may write any text as its amount.
        "tokens" if data.amount.len() <= 78 => {
            coin(&data.amount, &data.local_denom, explorer.unit(&data.local_denom).as_ref())
        }
        "tokens" => cell(&format!("{} {}", data.amount, short(&data.local_denom))),
        "nfts" => cell(&format!("{} of {}", data.token_ids.join(", "), short(&data.denom))),
        "transaction" => cell(&data.messages.join(", ")),
        _ => html! { span.none { "unknown data" } },
    }
}

/// A state as words.
pub(super) fn words(state: &str) -> String {
    state.replace('_', " ")
}

/// The state of a packet.
pub(super) fn state(state: &str) -> Markup {
    let shown = chain::truncated(&words(state), 20);
    match state {
        "acknowledged" => html! { span.badge.good { (shown) } },
        "failed" | "timed_out" | "stuck" => html! { span.badge.bad { (shown) } },
        _ => html! { span.badge.none { (shown) } },
    }
}

/// An account: a link if it is one of this chain, and not of another one, or no account at all.
pub(super) fn party(explorer: &Explorer, address: &str) -> Markup {
    if explorer.is_account(address) { account(address) } else { cell(address) }
}

/// Packets; `with_channel` if they may be of several channels.
pub(super) fn rows(explorer: &Explorer, packets: &[IbcPacket], with_channel: bool) -> Markup {
    let row = |of: &IbcPacket| {
        let data = of.data.clone().unwrap_or_default();
        let (port, channel) = own_end(of);
        let first = of.send.as_ref().or(of.receive.as_ref());
        let mut cells = vec![
            html! { a.num href=(page(channel, port, of.sequence)) { (of.sequence) } },
            state(&of.state),
            content(explorer, &data),
            party(explorer, &data.sender),
            party(explorer, &data.receiver),
            first.map_or_else(none, |stage| block(stage.height)),
            first.map_or_else(none, |stage| time(&stage.timestamp)),
        ];
        if with_channel {
            cells.insert(1, html! { (cell(channel)) " " span.dim { (chain::truncated(&of.side, 10)) } });
        }
        cells
    };
    let rows: Vec<_> = packets.iter().map(row).collect();
    let mut columns = vec!["Sequence", "State", "Content", "~Sender", "~Receiver", "Height", "~Time"];
    if with_channel {
        columns.insert(1, "~Channel");
    }
    table("Packets", &columns, &rows, "There are no such packets.")
}
