//! The JSON of a transaction's signed part and of its events, as the node's REST prints them: the cosmos-sdk's
//! `cosmos.tx.v1beta1.Tx` and `tendermint.abci.Event`. A record may lack any member, for example if no descriptor decodes it.

use web::schema::{DECIMAL, Field, Kind, Schema};

use super::block::COIN;

pub(super) static TX: Schema = Schema {
    name: "tx.SignedTx",
    doc: "The signed transaction (cosmos.tx.v1beta1.Tx).",
    fields: &[
        Field::maybe("@type", Kind::String, "First; `/cosmos.tx.v1beta1.Tx`."),
        Field::optional("body", Kind::Object(&BODY), "What it does."),
        Field::optional("auth_info", Kind::Object(&AUTH_INFO), "Signers and fee."),
        Field::maybe("signatures", Kind::Array(&Kind::String), "In base64, one for each signer."),
    ],
};

static BODY: Schema = Schema {
    name: "tx.Body",
    doc: "What a transaction does (cosmos.tx.v1beta1.TxBody).",
    fields: &[
        Field::maybe("messages", Kind::Array(&Kind::Object(&MESSAGE)), "In the order of their execution."),
        Field::maybe("memo", Kind::String, "Free text of the sender."),
        Field::maybe("timeout_height", DECIMAL, "The last height at which it counts; \"0\" for any."),
        Field::maybe(
            "extension_options",
            Kind::Array(&Kind::Object(&MESSAGE)),
            "Options that a chain must know.",
        ),
        Field::maybe(
            "non_critical_extension_options",
            Kind::Array(&Kind::Object(&MESSAGE)),
            "Options that a chain may ignore.",
        ),
    ],
};

static MESSAGE: Schema = Schema {
    name: "tx.Message",
    doc: "A message: its type, and the members of that type.",
    fields: &[Field::maybe("@type", Kind::String, "For example /cosmos.bank.v1beta1.MsgSend.")],
};

static AUTH_INFO: Schema = Schema {
    name: "tx.AuthInfo",
    doc: "Signers and fee (cosmos.tx.v1beta1.AuthInfo).",
    fields: &[
        Field::maybe(
            "signer_infos",
            Kind::Array(&Kind::Free),
            "Public key, mode and sequence of each signer.",
        ),
        Field::optional("fee", Kind::Object(&FEE), "What was paid."),
        Field::optional("tip", Kind::Free, "Out of use."),
    ],
};

static FEE: Schema = Schema {
    name: "tx.Fee",
    doc: "A fee (cosmos.tx.v1beta1.Fee).",
    fields: &[
        Field::maybe("amount", Kind::Array(&Kind::Object(&COIN)), "Empty for none."),
        Field::maybe("gas_limit", DECIMAL, "Decimal."),
        Field::maybe("payer", Kind::String, "Bech32; empty for the first signer."),
        Field::maybe("granter", Kind::String, "Bech32; empty for none."),
    ],
};

pub(super) static EVENT: Schema = Schema {
    name: "tx.Event",
    doc: "An event (tendermint.abci.Event).",
    fields: &[
        Field::maybe("type", Kind::String, "For example `transfer`."),
        Field::maybe("attributes", Kind::Array(&Kind::Object(&ATTRIBUTE)), "In the order of the chain."),
    ],
};

static ATTRIBUTE: Schema = Schema {
    name: "tx.EventAttribute",
    doc: "A key and its value.",
    fields: &[
        Field::maybe("key", Kind::String, ""),
        Field::optional("value", Kind::String, ""),
        Field::maybe("index", Kind::Boolean, "Whether the node finds transactions by it."),
    ],
};
