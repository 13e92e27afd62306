//! The values in the slots of a transaction, and the texts to look for in a recorded one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chain::Vm;
use sha3::{Digest as _, Sha3_256};

use crate::accounts::{Account, digest};
use crate::text::{Form, Needle, Part, Role, Slot, token_text};

/// The values in the slots of a transaction.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    pub(crate) sender: Account,
    pub(crate) recipient: Option<Account>,
    pub(crate) contract: Option<Account>,
    pub(crate) sequence: u64,
    /// The number of the NFT.
    pub(crate) token: Option<u64>,
    /// 64 bytes, or 65 with the parity.
    pub(crate) signature: Vec<u8>,
}

/// The properties of a chain that its texts depend on.
#[derive(Debug, Clone)]
pub(crate) struct Dialect {
    pub(crate) vm: Vm,
    /// The EVM's number of the chain.
    pub(crate) chain_id: u64,
    /// Move's object of the token that bank messages send.
    pub(crate) metadata: Option<[u8; 32]>,
}

impl Values {
    pub(crate) fn account(&self, role: Role) -> Option<&Account> {
        match role {
            Role::Sender => Some(&self.sender),
            Role::Recipient => self.recipient.as_ref(),
            Role::Contract => self.contract.as_ref(),
        }
    }

    /// Appends the content of a slot that depends on the transaction alone.
    pub(crate) fn write(&self, slot: Slot, out: &mut Vec<u8>) {
        match slot {
            Slot::Account(role, form) => {
                let Some(account) = self.account(role) else { return };
                match form {
                    Form::Hex => out.extend_from_slice(account.hex.as_bytes()),
                    Form::Checksum => out.extend_from_slice(account.checksum().as_bytes()),
                    Form::ShortHex => out.extend_from_slice(account.hex.trim_start_matches('0').as_bytes()),
                    Form::Bech32 => out.extend_from_slice(account.bech32.as_bytes()),
                    Form::Bytes => out.extend_from_slice(&account.address),
                    // Only results have it.
                    Form::Store => {}
                }
            }
            Slot::Sequence => out.extend_from_slice(self.sequence.to_string().as_bytes()),
            Slot::Signature => out.extend_from_slice(STANDARD.encode(&self.signature).as_bytes()),
            Slot::TokenWord => {
                out.extend_from_slice(format!("{:064x}", self.token.unwrap_or_default()).as_bytes());
            }
            Slot::TokenText => out.extend_from_slice(token_text(self.token.unwrap_or_default()).as_bytes()),
            Slot::Object(form) => {
                let object = object(self.token.unwrap_or_default());
                match form {
                    Form::Bytes => out.extend_from_slice(&object),
                    _ => out.extend_from_slice(hex::encode(object).trim_start_matches('0').as_bytes()),
                }
            }
            Slot::Data
            | Slot::EthHash
            | Slot::EthBlock
            | Slot::Height
            | Slot::Position
            | Slot::GasSoFar
            | Slot::Bloom => {}
        }
    }
}

/// The address of an NFT's object on Move, from which the number follows: its last 8 bytes.
pub(crate) fn object(token: u64) -> [u8; 32] {
    let mut object = digest("object", 0, token);
    object[24..].copy_from_slice(&token.to_be_bytes());
    object
}

/// The address of an account's primary store, without leading zeros (`object::create_user_derived_object_address`).
pub(crate) fn store(owner: &[u8; 20], metadata: &[u8; 32]) -> String {
    let hash =
        Sha3_256::new().chain_update([0; 12]).chain_update(owner).chain_update(metadata).chain_update([0xfc]);
    hex::encode(hash.finalize()).trim_start_matches('0').to_owned()
}

/// The needles of everything that depends on the transaction alone, in all forms of the chain.
pub(crate) fn needles(values: &Values, dialect: &Dialect) -> Vec<Needle> {
    let mut needles = Vec::new();
    let hex_form = if dialect.vm == Vm::Move { Form::ShortHex } else { Form::Hex };
    for role in [Role::Sender, Role::Recipient, Role::Contract] {
        let Some(account) = values.account(role) else { continue };
        let slot = |form| Slot::Account(role, form);
        let checksum = account.checksum();
        if checksum != account.hex {
            needles.push(Needle::new(checksum, slot(Form::Checksum)));
        }
        let hex = if hex_form == Form::Hex { &*account.hex } else { account.hex.trim_start_matches('0') };
        needles.push(Needle::new(hex, slot(hex_form)));
        if let Some(metadata) = &dialect.metadata {
            needles.push(Needle::new(store(&account.address, metadata), slot(Form::Store)));
        }
        needles.push(Needle::new(&*account.bech32, slot(Form::Bech32)));
        needles.push(Needle::new(account.address, slot(Form::Bytes)));
    }
    needles.push(Needle::with_parts(
        format!("{}/{}", values.sender.bech32, values.sequence),
        &[
            Part::Slot(Slot::Account(Role::Sender, Form::Bech32)),
            Part::Constant("/"),
            Part::Slot(Slot::Sequence),
        ],
    ));
    if let (Some(token), Vm::Evm) = (values.token, dialect.vm) {
        needles.push(Needle::new(format!("{token:064x}"), Slot::TokenWord));
    } else if let Some(token) = values.token {
        needles.push(Needle::new(token_text(token), Slot::TokenText));
        let object = object(token);
        needles.push(Needle::new(hex::encode(object), Slot::Object(Form::ShortHex)));
        needles.push(Needle::new(object, Slot::Object(Form::Bytes)));
    }
    needles
}
