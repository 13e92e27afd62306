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
        let head = format!("id: {id}\nevent: {name}\ndata: ");
        let mut frame = Vec::with_capacity(head.len() + data.len() + 2);
        frame.extend_from_slice(head.as_bytes());
        // A line break would end the field. In JSON it is white space only.
        frame.extend(data.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }));
        frame.extend_from_slice(b"\n\n");
        let frame = Bytes::from(frame);
        let id = frame.slice(4..4 + id.len());
        let data = frame.slice(head.len()..frame.len() - 2);
        Self { name, id, data, frame }
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
    }
}
