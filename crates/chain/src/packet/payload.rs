//! What a packet transports: tokens (ICS-20), NFTs (ICS-721), transactions of interchain accounts (ICS-27).

use std::borrow::Cow;

use alloy::sol_types::SolValue as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;

use super::Packet;
use crate::serde_lenient::JsonText;
use crate::wire::{Value, bytes_field, fields};

mod solidity {
    alloy::sol! {
        struct Tokens {
            string denom;
            string sender;
            string receiver;
            uint256 amount;
            string memo;
        }
    }
}

/// Messages of an interchain account's transaction that are named.
const MAX_MESSAGES: usize = 64;

/// What a packet transports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Payload {
    /// An amount of a token.
    Tokens {
        /// The sender, as the packet spells it.
        sender: String,
        /// The receiver.
        receiver: String,
        /// The denom with the hops that it has come over.
        denom: String,
        /// The amount in base units.
        amount: String,
        /// The memo.
        memo: String,
    },
    /// NFTs.
    Nfts {
        /// The sender.
        sender: String,
        /// The receiver.
        receiver: String,
        /// The class with the hops that it has come over.
        class_id: String,
        /// The ids.
        token_ids: Vec<String>,
        /// The memo.
        memo: String,
    },
    /// A transaction of an account of the other chain that an account of the sending chain controls.
    Transaction {
        /// Who controls the account.
        owner: String,
        /// The type URLs of its messages, the first 64.
        messages: Vec<String>,
        /// The memo.
        memo: String,
    },
    /// Something else, or malformed data.
    #[default]
    Raw,
}

/// The ports of a packet of IBC v2, which its payload names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// The sending application.
    pub source: String,
    /// The receiving application.
    pub destination: String,
}

impl Payload {
    /// The accounts that it names, each once.
    pub fn accounts(&self) -> Vec<&str> {
        match self {
            Self::Tokens { sender, receiver, .. } | Self::Nfts { sender, receiver, .. } => {
                let receiver = Some(receiver).filter(|receiver| *receiver != sender);
                [Some(sender), receiver].into_iter().flatten().map(String::as_str).collect()
            }
            Self::Transaction { owner, .. } => vec![owner],
            Self::Raw => Vec::new(),
        }
    }
}

/// What a packet transports, and its ports.
pub fn payload(packet: &Packet) -> (Payload, Ports) {
    let data = packet.data.as_deref().unwrap_or_default();
    if packet.version == 1 {
        let ports =
            Ports { source: packet.source.port.clone(), destination: packet.destination.port.clone() };
        return (of_json(&ports, data).unwrap_or(Payload::Raw), ports);
    }
    of_v2(data).unwrap_or_default()
}

/// The only payload of a packet of IBC v2; one with several is not decoded.
fn of_v2(packet: &[u8]) -> Option<(Payload, Ports)> {
    let fields_of_packet = fields(packet)?;
    let mut payloads = fields_of_packet.iter().filter_map(|field| match field {
        (5, Value::Bytes(payload)) => Some(*payload),
        _ => None,
    });
    let payload = fields(payloads.next()?)?;
    let text = |number| Some(std::str::from_utf8(bytes_field(&payload, number)?).ok()?.to_owned());
    let ports = Ports { source: text(1)?, destination: text(2)? };
    let (encoding, value) = (text(4).unwrap_or_default(), bytes_field(&payload, 5).unwrap_or_default());
    let decoded = match &*encoding {
        _ if payloads.next().is_some() => None,
        "application/x-protobuf" => of_protobuf(value),
        "application/x-solidity-abi" => of_solidity(value),
        _ => of_json(&ports, value),
    };
    Some((decoded.unwrap_or_default(), ports))
}

fn of_json(ports: &Ports, data: &[u8]) -> Option<Payload> {
    let is_account = |port: &str| port.starts_with("icacontroller-") || port == "icahost";
    if is_account(&ports.source) {
        return of_account(ports, data);
    }
    of_tokens(data).or_else(|| of_nfts(data))
}

/// `FungibleTokenPacketData` of ICS-20.
fn of_tokens(data: &[u8]) -> Option<Payload> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Data<'a> {
        denom: JsonText<'a>,
        amount: JsonText<'a>,
        sender: JsonText<'a>,
        receiver: JsonText<'a>,
        #[serde(default)]
        memo: JsonText<'a>,
    }
    let Data { denom, amount, sender, receiver, memo } = serde_json::from_slice(data).ok()?;
    let [denom, amount, sender, receiver, memo] =
        [denom, amount, sender, receiver, memo].map(|text| (*text).to_owned());
    Some(Payload::Tokens { sender, receiver, denom, amount, memo })
}

/// `NonFungibleTokenPacketData` of ICS-721, in protobuf's JSON or with the names of the specification.
fn of_nfts(data: &[u8]) -> Option<Payload> {
    #[derive(Deserialize)]
    struct Data {
        #[serde(alias = "class_id", rename = "classId")]
        class_id: String,
        #[serde(alias = "token_ids", rename = "tokenIds")]
        token_ids: Vec<String>,
        sender: String,
        receiver: String,
        #[serde(default)]
        memo: String,
    }
    let Data { class_id, token_ids, sender, receiver, memo } = serde_json::from_slice(data).ok()?;
    Some(Payload::Nfts { sender, receiver, class_id, token_ids, memo })
}

/// `InterchainAccountPacketData` of ICS-27.
fn of_account(ports: &Ports, data: &[u8]) -> Option<Payload> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Data<'a> {
        data: JsonText<'a>,
        #[serde(default)]
        memo: JsonText<'a>,
    }
    let Data { data, memo } = serde_json::from_slice(data).ok()?;
    let transaction = BASE64.decode(data.as_bytes()).ok()?;
    let owner = ports.source.strip_prefix("icacontroller-").unwrap_or_default().to_owned();
    let messages = messages_of_json(&transaction).or_else(|| messages_of_protobuf(&transaction))?;
    Some(Payload::Transaction { owner, messages, memo: (*memo).to_owned() })
}

/// The type URLs of `CosmosTx` in protobuf.
fn messages_of_protobuf(transaction: &[u8]) -> Option<Vec<String>> {
    let messages = fields(transaction)?;
    let message = |value: &Value<'_>| match value {
        Value::Bytes(message) => {
            Some(std::str::from_utf8(bytes_field(&fields(message)?, 1)?).ok()?.to_owned())
        }
        _ => None,
    };
    let first = messages.iter().filter(|(number, _)| *number == 1).take(MAX_MESSAGES);
    first.map(|(_, value)| message(value)).collect()
}

/// The type URLs of `CosmosTx` in protobuf's JSON.
fn messages_of_json(transaction: &[u8]) -> Option<Vec<String>> {
    #[derive(Deserialize)]
    #[serde(bound(deserialize = "'de: 'a"))]
    struct Transaction<'a> {
        messages: Vec<Message<'a>>,
    }
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(rename = "@type", borrow)]
        kind: Cow<'a, str>,
    }
    let Transaction { messages } = serde_json::from_slice(transaction).ok()?;
    Some(messages.into_iter().take(MAX_MESSAGES).map(|message| message.kind.into_owned()).collect())
}

/// `FungibleTokenPacketData` in protobuf.
fn of_protobuf(data: &[u8]) -> Option<Payload> {
    let fields = fields(data)?;
    let text =
        |number| Some(std::str::from_utf8(bytes_field(&fields, number).unwrap_or_default()).ok()?.to_owned());
    let (denom, amount, sender, receiver, memo) = (text(1)?, text(2)?, text(3)?, text(4)?, text(5)?);
    (!denom.is_empty() && !amount.is_empty()).then_some(Payload::Tokens {
        sender,
        receiver,
        denom,
        amount,
        memo,
    })
}

/// `FungibleTokenPacketData` as a contract encodes it.
fn of_solidity(data: &[u8]) -> Option<Payload> {
    let solidity::Tokens { denom, sender, receiver, amount, memo } =
        solidity::Tokens::abi_decode_validate(data).ok()?;
    Some(Payload::Tokens { sender, receiver, denom, amount: amount.to_string(), memo })
}

#[cfg(test)]
mod tests {
    use alloy::primitives::U256;
    use proptest::prelude::*;

    use super::super::End;
    use super::*;
    use crate::wire::push_len_prefixed;

    fn field(out: &mut Vec<u8>, number: u8, bytes: &[u8]) {
        out.push(number << 3 | 2);
        push_len_prefixed(out, bytes);
    }

    fn packet_of(encoding: &str, value: &[u8]) -> Packet {
        let (mut payload, mut packet) = (Vec::new(), vec![0x08, 7]);
        let members = [(1, "transfer"), (2, "transfer"), (3, "ics20-1"), (4, encoding)];
        for (number, text) in members {
            field(&mut payload, number, text.as_bytes());
        }
        field(&mut payload, 5, value);
        field(&mut packet, 5, &payload);
        Packet { version: 2, data: Some(packet), ..Packet::default() }
    }

    #[test]
    fn the_three_encodings_of_tokens_are_read_alike() {
        let expected = Payload::Tokens {
            sender: "a".to_owned(),
            receiver: "b".to_owned(),
            denom: "uinit".to_owned(),
            amount: "5".to_owned(),
            memo: String::new(),
        };
        let json = br#"{"denom":"uinit","amount":"5","sender":"a","receiver":"b","memo":""}"#;
        let mut protobuf = Vec::new();
        for (number, text) in [(1, "uinit"), (2, "5"), (3, "a"), (4, "b")] {
            field(&mut protobuf, number, text.as_bytes());
        }
        let solidity = solidity::Tokens {
            denom: "uinit".to_owned(),
            sender: "a".to_owned(),
            receiver: "b".to_owned(),
            amount: U256::from(5),
            memo: String::new(),
        };
        for (encoding, value) in [
            ("application/json", json.to_vec()),
            ("application/x-protobuf", protobuf),
            ("application/x-solidity-abi", solidity.abi_encode()),
        ] {
            let (payload, ports) = payload(&packet_of(encoding, &value));
            assert_eq!((payload, &*ports.source), (expected.clone(), "transfer"), "{encoding}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(version in 1_u32..3, port in "transfer|icahost|icacontroller-x", data in any::<Vec<u8>>()) {
            let source = End { port, channel: "channel-0".to_owned() };
            let _: (Payload, Ports) = payload(&Packet { version, source, data: Some(data), ..Packet::default() });
        }

        #[test]
        fn no_value_of_any_encoding_makes_it_panic(
            encoding in "application/(json|x-protobuf|x-solidity-abi)", value in any::<Vec<u8>>(),
        ) {
            let _: (Payload, Ports) = payload(&packet_of(&encoding, &value));
        }
    }
}
