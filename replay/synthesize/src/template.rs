//! A recorded transaction as a template: its bytes, result, receipt and trace with slots.
//!
//! # Invariants
//!
//! - A template with the values of its recorded transaction renders the recorded texts byte for byte; a transaction
//!   for which this fails is not a template. So no hash, filter or address in it is left unchanged.

use alloy::primitives::Bloom;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::accounts::KEY_TYPE;
use crate::auth::Auth;
use crate::evm_template::{EvmTemplate, Place};
use crate::text::{Form, Needle, Slot, Text};
use crate::values::{Dialect, Values, needles, store};
use crate::wire::{bytes, fields, push_bytes, push_number};

/// A recorded transaction with its replies, raw.
#[derive(Debug, Clone)]
pub(crate) struct Recorded<'a> {
    pub(crate) raw: Vec<u8>,
    pub(crate) result: String,
    /// Receipt and trace, on an EVM.
    pub(crate) evm: Option<(&'a str, &'a str)>,
}

#[derive(Debug)]
pub(crate) struct Template {
    body: Text,
    /// Mode of the signature and fee, as in the recorded transaction.
    mode: Vec<u8>,
    fee: Vec<u8>,
    data: Text,
    result: Text,
    has_data: bool,
    pub(crate) code: u32,
    pub(crate) gas_wanted: i64,
    pub(crate) gas_used: i64,
    pub(crate) signature_len: usize,
    metadata: Option<[u8; 32]>,
    evm: Option<EvmTemplate>,
}

/// The members of a result that its hash covers.
#[derive(Deserialize)]
struct ResultHead<'a> {
    code: u32,
    #[serde(borrow)]
    data: Option<&'a str>,
    gas_wanted: &'a str,
    gas_used: &'a str,
}

impl Template {
    /// The template of a transaction in which these values are to be replaced.
    pub(crate) fn compile(recorded: &Recorded<'_>, values: &Values, dialect: &Dialect) -> Option<Self> {
        let auth = Auth::parse(&recorded.raw)?;
        let raw = fields(&recorded.raw)?;
        let (body, signature) = (bytes(&raw, 1), bytes(&raw, 3));
        let head: ResultHead<'_> = serde_json::from_str(&recorded.result).ok()?;
        let data = STANDARD.decode(head.data.unwrap_or_default()).ok()?;
        let needles = needles(values, dialect);
        let mut of_result = needles.clone();
        of_result.push(Needle::new(STANDARD.encode(signature), Slot::Signature));
        if let Some(data) = head.data.filter(|data| !data.is_empty()) {
            of_result.push(Needle::new(data, Slot::Data));
        }
        let template = Self {
            body: Text::cut(body, &needles),
            mode: auth.mode.to_vec(),
            fee: auth.fee.to_vec(),
            data: Text::cut(&data, &needles),
            result: Text::cut(recorded.result.as_bytes(), &of_result),
            has_data: head.data.is_some(),
            code: head.code,
            gas_wanted: head.gas_wanted.parse().ok()?,
            gas_used: head.gas_used.parse().ok()?,
            signature_len: signature.len(),
            metadata: dialect.metadata,
            evm: match recorded.evm {
                Some((receipt, trace)) => {
                    Some(EvmTemplate::compile(body, receipt, trace, &needles, values, dialect.chain_id)?)
                }
                None => None,
            },
        };
        template.renders(recorded, values).then_some(template)
    }

    /// Whether the template with these values is the recorded transaction.
    fn renders(&self, recorded: &Recorded<'_>, values: &Values) -> bool {
        let mut result = Vec::new();
        self.render_result(&mut result, values);
        if self.raw(values) != recorded.raw || result != recorded.result.as_bytes() {
            return false;
        }
        let Some((receipt, trace)) = recorded.evm else { return true };
        self.evm.as_ref().is_some_and(|evm| evm.renders(receipt, trace, values))
    }

    /// Call frames of the trace.
    pub(crate) fn frames(&self) -> u64 {
        self.evm.as_ref().map_or(0, |evm| evm.frames)
    }

    /// The raw transaction.
    pub(crate) fn raw(&self, values: &Values) -> Vec<u8> {
        let (mut body, mut signer, mut raw) = (Vec::new(), Vec::new(), Vec::new());
        self.body.render(&mut body, |slot, out| values.write(slot, out));
        let (mut key, mut auth) = (Vec::new(), Vec::new());
        push_bytes(&mut auth, 1, &values.sender.key.unwrap_or([0; 33]));
        push_bytes(&mut key, 1, KEY_TYPE.as_bytes());
        push_bytes(&mut key, 2, &auth);
        push_bytes(&mut signer, 1, &key);
        push_bytes(&mut signer, 2, &self.mode);
        push_number(&mut signer, 3, values.sequence);
        auth.clear();
        push_bytes(&mut auth, 1, &signer);
        push_bytes(&mut auth, 2, &self.fee);
        push_bytes(&mut raw, 1, &body);
        push_bytes(&mut raw, 2, &auth);
        push_bytes(&mut raw, 3, &values.signature);
        raw
    }

    /// The result's data, base64; `None` if it has none.
    pub(crate) fn data(&self, values: &Values) -> Option<String> {
        let mut data = Vec::new();
        self.data.render(&mut data, |slot, out| values.write(slot, out));
        self.has_data.then(|| STANDARD.encode(data))
    }

    /// Appends the result.
    pub(crate) fn render_result(&self, out: &mut Vec<u8>, values: &Values) {
        self.result.render(out, |slot, out| match slot {
            Slot::Data => out.extend_from_slice(self.data(values).unwrap_or_default().as_bytes()),
            Slot::Account(role, Form::Store) => {
                if let (Some(account), Some(metadata)) = (values.account(role), &self.metadata) {
                    out.extend_from_slice(store(&account.address, metadata).as_bytes());
                }
            }
            slot => values.write(slot, out),
        });
    }

    /// The filter of the logs; empty without an EVM.
    pub(crate) fn bloom(&self, values: &Values) -> Bloom {
        self.evm.as_ref().map(|evm| evm.bloom(values)).unwrap_or_default()
    }

    /// Appends receipt and trace; returns the hash of the Ethereum transaction and the filter.
    pub(crate) fn render_evm(
        &self,
        receipts: &mut Vec<u8>,
        traces: &mut Vec<u8>,
        values: &Values,
        place: Place<'_>,
    ) -> ([u8; 32], Bloom) {
        self.evm.as_ref().map(|evm| evm.render(receipts, traces, values, place)).unwrap_or_default()
    }
}
