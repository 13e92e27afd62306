//! Ethereum transactions as ethermint and its first descendants write them: a message of their fields, of types 0 to 2, from which the
//! bytes that were signed follow. Their hash is stated next to them and proves the rebuilt bytes.

use alloy::primitives::U256;
use alloy::rlp::{Encodable, Header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::log::bytes;
use crate::serde_lenient::{JsonText, list, number};
use crate::wire::{Value, bytes_field, fields};

/// The names of the types, without the package.
const KINDS: [&str; 3] = ["LegacyTx", "AccessListTx", "DynamicFeeTx"];

/// The fields of a transaction; the names of those that a type lacks stay empty.
#[derive(Default)]
struct Fields {
    kind: u8,
    chain_id: U256,
    nonce: u64,
    /// The price, or tip and cap.
    prices: Vec<U256>,
    gas: u64,
    to: Option<[u8; 20]>,
    value: U256,
    data: Vec<u8>,
    accesses: Vec<([u8; 20], Vec<[u8; 32]>)>,
    /// `v`, `r` and `s`.
    signature: [U256; 3],
}

/// The bytes of a transaction (EIP-2718) in the field `data` of a message, an `Any`.
pub(crate) fn raw_of_message(any: &[u8]) -> Option<Vec<u8>> {
    let any = fields(any)?;
    let name = std::str::from_utf8(bytes_field(&any, 1)?).ok()?.rsplit('.').next()?;
    let kind = KINDS.iter().position(|known| *known == name)?;
    let all = fields(bytes_field(&any, 2).unwrap_or_default())?;
    // Types 1 and 2 begin with the id of the chain, and have lists of accesses.
    let first = u32::from(kind > 0);
    let prices = if kind == 2 { 2 } else { 1 };
    let text = |number| bytes_field(&all, number).map_or(Some(""), |text| std::str::from_utf8(text).ok());
    let whole = |number| {
        all.iter().rev().find_map(|field| match *field {
            (n, Value::Varint(whole)) if n == number => Some(whole),
            _ => None,
        })
    };
    let after = first + 1 + prices;
    let data = after + 4;
    let signature = data + 1 + first;
    let accesses =
        all.iter().filter(|(number, _)| first == 1 && *number == data + 1).map(|(_, value)| match value {
            Value::Bytes(tuple) => access(tuple),
            _ => None,
        });
    let fields = Fields {
        kind: u8::try_from(kind).ok()?,
        chain_id: if first == 1 { decimal(text(1)?)? } else { U256::ZERO },
        nonce: whole(first + 1).unwrap_or_default(),
        prices: (first + 2..first + 2 + prices)
            .map(|number| decimal(text(number)?))
            .collect::<Option<_>>()?,
        gas: whole(after + 1).unwrap_or_default(),
        to: address(text(after + 2)?).ok()?,
        value: decimal(text(after + 3)?)?,
        data: bytes_field(&all, data).unwrap_or_default().to_vec(),
        accesses: accesses.collect::<Option<_>>()?,
        signature: [0, 1, 2].map(|at| {
            U256::try_from_be_slice(bytes_field(&all, signature + at).unwrap_or_default()).unwrap_or_default()
        }),
    };
    Some(fields.encoded())
}

fn access(tuple: &[u8]) -> Option<([u8; 20], Vec<[u8; 32]>)> {
    let tuple = fields(tuple)?;
    let text = |value: &[u8]| std::str::from_utf8(value).ok().map(str::to_owned);
    let keys = tuple.iter().filter(|(number, _)| *number == 2).map(|(_, value)| match value {
        Value::Bytes(key) => bytes(&text(key)?),
        _ => None,
    });
    Some((bytes(&text(bytes_field(&tuple, 1)?)?)?, keys.collect::<Option<_>>()?))
}

/// The same in the member `data` of a message in a stored record.
pub(crate) fn raw_of_json(data: &RawValue) -> Option<Vec<u8>> {
    let json: Json<'_> = serde_json::from_str(data.get()).ok()?;
    let name = json.kind.rsplit('.').next()?;
    let kind = KINDS.iter().position(|known| *known == name)?;
    let prices = if kind == 2 { vec![&json.gas_tip_cap, &json.gas_fee_cap] } else { vec![&json.gas_price] };
    let signature = [&json.v, &json.r, &json.s]
        .map(|text| base64(text).and_then(|bytes| U256::try_from_be_slice(&bytes)));
    let [Some(v), Some(r), Some(s)] = signature else { return None };
    let accesses = json.accesses.iter().map(|tuple| {
        let keys = tuple.storage_keys.iter().map(|key| bytes(key)).collect::<Option<_>>()?;
        Some((bytes(&tuple.address)?, keys))
    });
    let fields = Fields {
        kind: u8::try_from(kind).ok()?,
        chain_id: decimal(&json.chain_id)?,
        nonce: json.nonce,
        prices: prices.into_iter().map(|text| decimal(text)).collect::<Option<_>>()?,
        gas: json.gas,
        to: address(&json.to).ok()?,
        value: decimal(&json.value)?,
        data: base64(&json.data)?,
        accesses: accesses.collect::<Option<_>>()?,
        signature: [v, r, s],
    };
    Some(fields.encoded())
}

/// The members of all types.
#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct Json<'a> {
    #[serde(rename = "@type")]
    kind: JsonText<'a>,
    chain_id: JsonText<'a>,
    #[serde(deserialize_with = "number")]
    nonce: u64,
    gas_price: JsonText<'a>,
    gas_tip_cap: JsonText<'a>,
    gas_fee_cap: JsonText<'a>,
    #[serde(deserialize_with = "number")]
    gas: u64,
    to: JsonText<'a>,
    value: JsonText<'a>,
    data: JsonText<'a>,
    #[serde(deserialize_with = "list")]
    accesses: Vec<AccessTuple<'a>>,
    v: JsonText<'a>,
    r: JsonText<'a>,
    s: JsonText<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, bound(deserialize = "'de: 'a"))]
struct AccessTuple<'a> {
    address: JsonText<'a>,
    #[serde(deserialize_with = "list")]
    storage_keys: Vec<JsonText<'a>>,
}

fn base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// An absent number is zero.
fn decimal(text: &str) -> Option<U256> {
    if text.is_empty() { Some(U256::ZERO) } else { U256::from_str_radix(text, 10).ok() }
}

/// A text that is no address.
struct NoAddress;

/// A creation has no recipient.
fn address(text: &str) -> Result<Option<[u8; 20]>, NoAddress> {
    if text.is_empty() { Ok(None) } else { bytes(text).map(Some).ok_or(NoAddress) }
}

impl Fields {
    /// The bytes that were signed, with the signature.
    fn encoded(&self) -> Vec<u8> {
        let mut items = Vec::new();
        if self.kind > 0 {
            self.chain_id.encode(&mut items);
        }
        self.nonce.encode(&mut items);
        for price in &self.prices {
            price.encode(&mut items);
        }
        self.gas.encode(&mut items);
        self.to.as_ref().map_or(&[][..], |to| to).encode(&mut items);
        self.value.encode(&mut items);
        self.data.as_slice().encode(&mut items);
        if self.kind > 0 {
            in_list(&self.accesses, &mut items, |(address, keys), out| {
                in_list(std::slice::from_ref(keys), out, |keys, out| {
                    address.as_slice().encode(out);
                    in_list(keys, out, |key, out| key.as_slice().encode(out));
                });
            });
        }
        for part in &self.signature {
            part.encode(&mut items);
        }
        let mut out = if self.kind > 0 { vec![self.kind] } else { Vec::new() };
        Header { list: true, payload_length: items.len() }.encode(&mut out);
        out.extend_from_slice(&items);
        out
    }
}

/// Appends a list of what `each` appends.
fn in_list<T>(all: &[T], out: &mut Vec<u8>, each: impl Fn(&T, &mut Vec<u8>)) {
    let mut items = Vec::new();
    for one in all {
        each(one, &mut items);
    }
    Header { list: true, payload_length: items.len() }.encode(out);
    out.extend_from_slice(&items);
}

#[cfg(test)]
mod tests {
    use alloy::primitives::hex;

    use super::*;
    use crate::evm::envelope::Envelope;
    use crate::wire::push_len_prefixed;

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let mut field = vec![number << 3 | 2];
        push_len_prefixed(&mut field, bytes);
        field
    }

    fn any(kind: &str, fields: &[Vec<u8>]) -> Vec<u8> {
        let url = format!("/ethermint.evm.v1.{kind}");
        [field(1, url.as_bytes()), field(2, &fields.concat())].concat()
    }

    /// The example of EIP-155.
    const LEGACY: &[u8] = &hex!(
        "f86c098504a817c800825208943535353535353535353535353535353535353535880de0b6b3a76400008025a028ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276a067cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"
    );

    #[test]
    fn a_legacy_transaction_has_the_bytes_that_were_signed() {
        let [r, s] = [
            hex!("28ef61340bd939bc2195fe537567866003e1a15d3c71ff63e1590620aa636276"),
            hex!("67cbe9d8997f761aecb703304b3800ccf555c9f3dc64214b297fb1966a3b6d83"),
        ];
        let to = format!("0x{}", "35".repeat(20));
        let legacy = any(
            "LegacyTx",
            &[
                vec![1 << 3, 9],
                field(2, b"20000000000"),
                vec![3 << 3, 0x88, 0xa4, 0x01],
                field(4, to.as_bytes()),
                field(5, b"1000000000000000000"),
                field(7, &[37]),
                field(8, &r),
                field(9, &s),
            ],
        );
        assert_eq!(raw_of_message(&legacy).as_deref(), Some(LEGACY));
        let json = serde_json::json!({
            "@type": "/ethermint.evm.v1.LegacyTx", "nonce": "9", "gas_price": "20000000000", "gas": "21000", "to": to,
            "value": "1000000000000000000", "data": null, "v": BASE64.encode([37]), "r": BASE64.encode(r), "s": BASE64.encode(s),
        });
        let json = serde_json::value::to_raw_value(&json).unwrap();
        assert_eq!(raw_of_json(&json).as_deref(), Some(LEGACY));
    }

    #[test]
    fn a_transaction_with_a_fee_cap_and_accesses_reads_back() {
        let (to, key) = (format!("0x{}", "aa".repeat(20)), format!("0x{}", "01".repeat(32)));
        let tuple = [field(1, to.as_bytes()), field(2, key.as_bytes())].concat();
        let dynamic = any(
            "DynamicFeeTx",
            &[
                field(1, b"9000"),
                vec![2 << 3, 7],
                field(3, b"2"),
                field(4, b"100"),
                vec![5 << 3, 0x88, 0xa4, 0x01],
                field(6, to.as_bytes()),
                field(7, b"5"),
                field(8, &[0xab]),
                field(9, &tuple),
                field(10, &[1]),
                field(11, &[2; 32]),
                field(12, &[3; 32]),
            ],
        );
        let envelope = Envelope::read(&raw_of_message(&dynamic).unwrap()).unwrap();
        assert_eq!(
            (envelope.kind, envelope.chain_id, envelope.nonce, envelope.gas_limit),
            (2, Some(9000), 7, 21000)
        );
        assert_eq!(
            (envelope.tip_cap, envelope.fee_cap, envelope.value),
            (U256::from(2), U256::from(100), U256::from(5))
        );
        assert_eq!((envelope.to, &envelope.input[..]), (Some([0xaa; 20]), &[0xab][..]));
        assert_eq!(envelope.access_list, [([0xaa; 20], vec![[1; 32]])]);
        assert_eq!((envelope.v, envelope.r), (U256::from(1), U256::from_be_bytes([2; 32])));
    }

    #[test]
    fn other_types_and_malformed_fields_have_no_bytes() {
        for bytes in [any("BlobTx", &[]), any("LegacyTx", &[field(4, b"0x12")]), vec![0xff], Vec::new()] {
            assert_eq!(raw_of_message(&bytes), None);
        }
    }
}
