//! Whole transactions: the envelope of a block's raw bytes, body, authentication and signatures.
//!
//! A transaction in a block is a `TxRaw`, in which body and authentication are encoded bytes; a node prints the `Tx` of
//! these parts. An error leaves the output unchanged.

use crate::json::emit::{Emitter, Scratch};
use crate::json::text::write_base64;
use crate::json::wire::{Cursor, Wire};
use crate::json::{Error, Registry};

const TYPED: &[u8] = b"{\"@type\":\"/cosmos.tx.v1beta1.Tx\",\"body\":";

/// An empty transaction.
const SKELETON: &[u8] = b"{\"@type\":\"/cosmos.tx.v1beta1.Tx\",\
\"body\":{\"messages\":[],\"memo\":\"\",\"timeout_height\":\"0\",\"extension_options\":[],\
\"non_critical_extension_options\":[]},\
\"auth_info\":{\"signer_infos\":[],\"fee\":{\"amount\":[],\"gas_limit\":\"0\",\"payer\":\"\",\"granter\":\"\"},\
\"tip\":null},\"signatures\":[]}";

/// Appends the JSON of a transaction, as the node's REST prints it with `"@type"` in front, to `out`.
///
/// `raw_tx` is a transaction as in a block (`cosmos.tx.v1beta1.TxRaw`). Unknown fields are rejected as by the node's
/// decoder: always in the envelope and the authentication, and in the body unless their number marks them as not
/// critical. On an error `out` is unchanged.
pub fn write_tx(registry: &Registry, raw_tx: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
    whole(registry, out, false, |emitter| tx(emitter, raw_tx))
}

/// Appends the JSON of a message by full name (`cosmos.bank.v1beta1.MsgSend`), without `"@type"`, to `out`.
///
/// On an error `out` is unchanged.
pub fn write_message(
    registry: &Registry,
    full_name: &str,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let unknown = || Error::UnknownType { type_url: format!("/{full_name}") };
    let index = registry.named(full_name).ok_or_else(unknown)?;
    whole(registry, out, false, |emitter| emitter.message(&mut Scratch::default(), index, bytes))
}

/// Appends the printable part of a transaction that [`write_tx`] rejects; the last resort, which never fails.
///
/// An Any that cannot be printed (of an unknown type, or with bytes that do not fit) becomes
/// `{"@type":…,"value":"<base64>"}`; nested ones as deep inside as possible. If the envelope, the body or the
/// authentication itself does not decode, an empty transaction is written.
pub fn write_opaque_tx(registry: &Registry, raw_tx: &[u8], out: &mut Vec<u8>) {
    if whole(registry, out, true, |emitter| tx(emitter, raw_tx)).is_err() {
        out.extend_from_slice(SKELETON);
    }
}

/// Runs `write`; on an error truncates its output.
fn whole(
    registry: &Registry,
    out: &mut Vec<u8>,
    opaque: bool,
    write: impl FnOnce(&mut Emitter<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    let start = out.len();
    let mut emitter = Emitter::new(registry, out, opaque);
    let result = write(&mut emitter).and_then(|()| emitter.within_limit());
    if result.is_err() {
        out.truncate(start);
    }
    result
}

fn tx(emitter: &mut Emitter<'_>, raw_tx: &[u8]) -> Result<(), Error> {
    let raw = Raw::decode(raw_tx)?;
    let mut scratch = Scratch::default();
    emitter.out.extend_from_slice(TYPED);
    emitter.message(&mut scratch, emitter.registry.body, raw.body)?;
    emitter.out.extend_from_slice(b",\"auth_info\":");
    emitter.strict = true;
    emitter.message(&mut scratch, emitter.registry.auth_info, raw.auth_info)?;
    emitter.out.extend_from_slice(b",\"signatures\":[");
    for (index, signature) in raw.signatures.iter().enumerate() {
        if index > 0 {
            emitter.out.push(b',');
        }
        write_base64(signature, emitter.out);
    }
    emitter.out.extend_from_slice(b"]}");
    Ok(())
}

/// The parts of a `cosmos.tx.v1beta1.TxRaw`.
#[derive(Default)]
struct Raw<'a> {
    body: &'a [u8],
    auth_info: &'a [u8],
    signatures: Vec<&'a [u8]>,
}

impl<'a> Raw<'a> {
    const NAME: &'static str = "cosmos.tx.v1beta1.TxRaw";

    fn decode(bytes: &'a [u8]) -> Result<Self, Error> {
        let malformed = |reason| Error::Malformed { place: Self::NAME.to_owned(), reason };
        let mut raw = Self::default();
        let mut cursor = Cursor::new(bytes);
        while let Some((number, value)) = cursor.field().map_err(malformed)? {
            match (number, value.wire) {
                (1, Wire::Bytes) => raw.body = value.bytes,
                (2, Wire::Bytes) => raw.auth_info = value.bytes,
                (3, Wire::Bytes) => raw.signatures.push(value.bytes),
                (1..=3, _) => return Err(malformed("another wire type than bytes")),
                _ => return Err(Error::UnknownField { message: Self::NAME.to_owned(), number }),
            }
        }
        Ok(raw)
    }
}
