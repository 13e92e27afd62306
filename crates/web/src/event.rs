//! Server-sent events (the `text/event-stream` format of the HTML standard).
//!
//! An event is rendered once, and all its readers share the bytes.

use bytes::Bytes;
use futures_util::stream::BoxStream;

/// The content type of a stream.
pub const EVENT_STREAM: &str = "text/event-stream";

/// A comment: proxies keep a stream open that sends it, and a write to a client that is gone fails.
pub(crate) const HEARTBEAT: Bytes = Bytes::from_static(b":\n\n");

/// The events of one reader, in order; its end ends the response.
pub type EventStream = BoxStream<'static, Event>;

/// One event.
#[derive(Clone, Debug)]
pub struct Event {
    name: &'static str,
    id: Bytes,
    data: Bytes,
    frame: Bytes,
}

impl Event {
    /// An event `name` with the JSON text `data`. A reader resumes from `id`, visible ASCII.
    pub fn new(name: &'static str, id: &str, data: &[u8]) -> Self {
        debug_assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id:?}");
        let (frame, data) = framed(&format!("id: {id}\nevent: {name}\n"), data);
        let id = frame.slice(4..4 + id.len());
        Self { name, id, data, frame }
    }

    /// An event with the JSON text `data` and no name, which browsers call `message`. No reader resumes from it.
    pub fn unnamed(data: &[u8]) -> Self {
        let (frame, data) = framed("", data);
        Self { name: "message", id: Bytes::new(), data, frame }
    }

    /// Its kind.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The position just after it.
    pub fn id(&self) -> &[u8] {
        &self.id
    }

    /// The JSON text.
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// The event as sent.
    pub fn frame(&self) -> &Bytes {
        &self.frame
    }
}

/// The event as sent, behind the fields `head`, and its data.
fn framed(head: &str, data: &[u8]) -> (Bytes, Bytes) {
    const DATA: &str = "data: ";
    let start = head.len() + DATA.len();
    let mut frame = Vec::with_capacity(start + data.len() + 2);
    frame.extend_from_slice(head.as_bytes());
    frame.extend_from_slice(DATA.as_bytes());
    // A line break would end the field. In JSON it is white space only.
    frame.extend(data.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
    frame.extend_from_slice(b"\n\n");
    let frame = Bytes::from(frame);
    let data = frame.slice(start..frame.len() - 2);
    (frame, data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_break_in_the_data_does_not_end_the_event() {
        let event = Event::new("block", "AQ", b"{\n\"n\":1\r}");
        assert_eq!(event.frame(), "id: AQ\nevent: block\ndata: { \"n\":1 }\n\n");
        assert_eq!(
            (event.name(), event.id(), event.data().as_ref()),
            ("block", &b"AQ"[..], &b"{ \"n\":1 }"[..])
        );
        let unnamed = Event::unnamed(b"{\n}");
        assert_eq!((unnamed.frame().as_ref(), unnamed.id()), (&b"data: { }\n\n"[..], &b""[..]));
    }
}
