//! What a transaction did, in a sentence for each message.
//!
//! A sentence says what the message asks for; amounts and receivers are those of the movements that the chain recorded, where the index
//! has them.

use maud::{Markup, html};
use query::v1::{Coin, EvmTx, IbcPacket, Transfer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::movements::{self, is_nft};
use super::packets;
use super::rows::coins;
use crate::explorer::Explorer;
use crate::format::{account, cell, count, short};

/// Sentences of a summary.
const SENTENCES: usize = 4;

/// What is known of a transaction.
pub(super) struct Known<'a> {
    pub(super) explorer: &'a Explorer,
    /// Its movements without fees.
    pub(super) transfers: &'a [Transfer],
    /// The packets that went a step in it.
    pub(super) packets: &'a [IbcPacket],
    /// Its EVM half.
    pub(super) evm: Option<&'a EvmTx>,
    /// What ABIs say of the call of that half.
    pub(super) decoded: &'a Value,
}

impl Known<'_> {
    /// What the messages do.
    pub(super) fn summary(&self, messages: &[Box<RawValue>]) -> Markup {
        let parsed = messages.iter().take(2 * SENTENCES).map(|message| serde_json::from_str(message.get()));
        let parsed: Vec<Value> = parsed.map(Result::unwrap_or_default).collect();
        let is_prelude = |message: &Value| kind(message).ends_with(".MsgUpdateClient");
        // A relayer brings a header along with what it relays.
        let all_prelude = parsed.iter().all(is_prelude);
        let told = parsed.iter().enumerate().filter(|(_, message)| all_prelude || !is_prelude(message));
        let told: Vec<_> = told.take(SENTENCES).collect();
        let last = told.last().map_or(0, |(place, _)| place + 1);
        html! {
            @for (n, (place, message)) in told.iter().enumerate() {
                @if n > 0 { ". " }
                (self.sentence(*place, message))
            }
            @if messages.len() > last {
                @let more = messages.len() - last;
                " and " (count(more)) @if more == 1 { " more message" } @else { " more messages" }
            }
            "."
        }
    }

    fn sentence(&self, place: usize, message: &Value) -> Markup {
        let kind = kind(message);
        let text = |name: &str| message[name].as_str().unwrap_or_default();
        let sender_of = signer(message);
        let sender = || self.party(sender_of);
        let amount = |name: &str| self.coins(&message[name]);
        match kind {
            "/cosmos.bank.v1beta1.MsgSend" => html! {
                (self.party(text("from_address"))) " sent " (amount("amount")) " to " (self.party(text("to_address")))
            },
            "/cosmos.bank.v1beta1.MsgMultiSend" => html! {
                (self.party(message["inputs"][0]["address"].as_str().unwrap_or_default()))
                " sent " (self.coins(&message["inputs"][0]["coins"]))
                " to " (count(message["outputs"].as_array().map_or(0, Vec::len))) " accounts"
            },
            "/ibc.applications.transfer.v1.MsgTransfer" => html! {
                (sender()) " sent " (amount("token")) " to " (self.party(text("receiver")))
                " over " (self.sent_packet(place, text("source_channel")))
            },
            "/ibc.applications.nft_transfer.v1.MsgTransfer" => html! {
                (sender()) " sent " (nfts(&message["token_ids"], text("class_id"))) " to " (self.party(text("receiver")))
                " over " (self.sent_packet(place, text("source_channel")))
            },
            "/ibc.core.channel.v1.MsgRecvPacket" => {
                self.relayed(&message["packet"], "destination", "was received")
            }
            "/ibc.core.channel.v1.MsgAcknowledgement" => {
                self.relayed(&message["packet"], "source", "was acknowledged")
            }
            "/ibc.core.channel.v1.MsgTimeout" | "/ibc.core.channel.v1.MsgTimeoutOnClose" => {
                self.relayed(&message["packet"], "source", "timed out")
            }
            "/ibc.core.client.v1.MsgUpdateClient" => {
                html! { "The client " (cell(text("client_id"))) " was updated" }
            }
            "/minievm.evm.v1.MsgCall" => self.evm_call(place, message),
            "/cosmos.evm.vm.v1.MsgEthereumTx" | "/ethermint.evm.v1.MsgEthereumTx" => {
                self.evm.map_or_else(|| self.other(message), |evm| self.ethereum(place, evm))
            }
            "/minievm.evm.v1.MsgCreate" | "/minievm.evm.v1.MsgCreate2" => {
                let created = self.evm.and_then(|evm| evm.contract_address.as_deref()).unwrap_or_default();
                html! { (sender()) " created " @if created.is_empty() { "a contract" } @else { "the contract " (account(created)) } }
            }
            "/initia.move.v1.MsgExecute" | "/initia.move.v1.MsgExecuteJSON" => {
                let module = self.party(text("module_address"));
                let function = format!("{}::{}", text("module_name"), text("function_name"));
                self.called(place, sender_of, html! { (cell(&function)) " of " (module) })
            }
            "/initia.move.v1.MsgPublish" => {
                let modules = message["code_bytes"].as_array().map_or(0, Vec::len);
                html! { (sender()) " published " (count(modules)) @if modules == 1 { " module" } @else { " modules" } }
            }
            "/cosmwasm.wasm.v1.MsgExecuteContract" => {
                let function = message["msg"].as_object().and_then(|call| call.keys().next());
                let function = function.map_or("a function", String::as_str);
                let of = html! { (cell(function)) " of " (self.party(text("contract"))) };
                self.called(place, sender_of, of)
            }
            "/cosmwasm.wasm.v1.MsgInstantiateContract" | "/cosmwasm.wasm.v1.MsgInstantiateContract2" => {
                html! {
                    (sender()) " created a contract " (cell(text("label"))) " of code " (cell(text("code_id")))
                }
            }
            "/cosmwasm.wasm.v1.MsgStoreCode" => html! { (sender()) " stored the code of contracts" },
            "/opinit.opchild.v1.MsgInitiateTokenWithdrawal" => html! {
                (sender()) " withdrew " (amount("amount")) " to " (self.party(text("to"))) " on the layer one"
            },
            "/opinit.opchild.v1.MsgFinalizeTokenDeposit" => html! {
                "Deposit " (cell(text("sequence"))) " arrived: " (amount("amount")) " for " (self.party(text("to")))
            },
            "/opinit.ophost.v1.MsgInitiateTokenDeposit" => html! {
                (sender()) " deposited " (amount("amount")) " into bridge " (cell(text("bridge_id")))
                " for " (self.party(text("to")))
            },
            "/opinit.ophost.v1.MsgFinalizeTokenWithdrawal" => html! {
                "Withdrawal " (cell(text("sequence"))) " of bridge " (cell(text("bridge_id")))
                " was claimed: " (amount("amount")) " for " (self.party(text("to")))
            },
            "/opinit.ophost.v1.MsgProposeOutput" => html! {
                "Output " (cell(text("output_index"))) " of bridge " (cell(text("bridge_id"))) " was proposed"
            },
            "/opinit.ophost.v1.MsgRecordBatch" => html! {
                "Blocks of bridge " (cell(text("bridge_id"))) " were published"
            },
            "/cosmos.authz.v1beta1.MsgExec" => {
                let first = message["msgs"].get(0).filter(|inner| !is_exec(inner));
                html! {
                    (self.party(text("grantee"))) ", for another account: "
                    @if let Some(inner) = first { (self.sentence(place, inner)) } @else { "nothing" }
                }
            }
            "/cosmos.authz.v1beta1.MsgGrant" => html! {
                (self.party(text("granter"))) " allowed " (self.party(text("grantee"))) " to act for it"
            },
            "/cosmos.authz.v1beta1.MsgRevoke" => html! {
                (self.party(text("granter"))) " took a permission from " (self.party(text("grantee")))
            },
            "/cosmos.feegrant.v1beta1.MsgGrantAllowance" => html! {
                (self.party(text("granter"))) " allowed " (self.party(text("grantee"))) " to spend its coins on fees"
            },
            "/cosmos.feegrant.v1beta1.MsgRevokeAllowance" => html! {
                (self.party(text("granter"))) " no longer pays fees of " (self.party(text("grantee")))
            },
            _ => self.other(message),
        }
    }

    /// A message of staking or governance, or any other one.
    fn other(&self, message: &Value) -> Markup {
        let name = kind(message).rsplit('.').next().unwrap_or_default();
        let text = |name: &str| message[name].as_str().unwrap_or_default();
        let by = self.party(signer(message));
        let amount = self.coins(&message["amount"]);
        match name {
            "MsgDelegate" => html! { (by) " delegated " (amount) " to " (cell(text("validator_address"))) },
            "MsgUndelegate" => {
                html! { (by) " undelegated " (amount) " from " (cell(text("validator_address"))) }
            }
            "MsgBeginRedelegate" => html! {
                (by) " moved " (amount) " from " (cell(text("validator_src_address"))) " to " (cell(text("validator_dst_address")))
            },
            "MsgWithdrawDelegatorReward" => {
                html! { (by) " took its reward from " (cell(text("validator_address"))) }
            }
            "MsgVote" => html! { (by) " voted on proposal " (cell(text("proposal_id"))) },
            _ => html! { (by) ": " (cell(&words(name))) },
        }
    }

    fn evm_call(&self, place: usize, message: &Value) -> Markup {
        let text = |name: &str| message[name].as_str().unwrap_or_default();
        let (contract, input) = (text("contract_addr"), text("input"));
        // What ABIs say is of the call that the EVM half is.
        let call = &self.decoded["call"];
        let is_half = call["selector"].as_str().is_some_and(|selector| input.starts_with(selector))
            && call["contract"].as_str().is_some_and(|to| to.eq_ignore_ascii_case(contract));
        let function = call["function"].as_str().filter(|_| is_half);
        let function = function.and_then(|shown| shown.split('(').next());
        if input.len() < 10 {
            let value = text("value");
            if let [moved] = &*self.of_message(place) {
                return html! { (self.party(signer(message))) " sent " (movements::amount(self.explorer, moved)) " to " (account(contract)) };
            }
            return html! {
                (self.party(signer(message))) @if value == "0" { " called " } @else { " sent value to " } (account(contract))
            };
        }
        let of = match (function, input.get(..10)) {
            (Some(function), _) => html! { (cell(function)) " of " (account(contract)) },
            (None, Some(selector)) => html! { span.mono { (selector) } " of " (account(contract)) },
            (None, None) => account(contract),
        };
        self.called(place, signer(message), of)
    }

    /// A transaction of Ethereum that a message only carries: what it does is in the EVM half.
    fn ethereum(&self, place: usize, evm: &EvmTx) -> Markup {
        let (by, to) = (evm.from.as_str(), evm.to.as_str());
        if to.is_empty() {
            let created = evm.contract_address.as_deref().unwrap_or_default();
            return html! { (self.party(by)) " created " @if created.is_empty() { "a contract" } @else { "the contract " (account(created)) } };
        }
        let function = self.decoded["call"]["function"].as_str().and_then(|shown| shown.split('(').next());
        match (function, &*self.of_message(place)) {
            (Some(function), _) => self.called(place, by, html! { (cell(function)) " of " (account(to)) }),
            (None, [moved]) if self.is_same(&moved.to, to) => {
                html! { (self.party(by)) " sent " (movements::amount(self.explorer, moved)) " to " (account(to)) }
            }
            (None, _) => self.called(place, by, account(to)),
        }
    }

    /// A call of a contract by an account: what it moved, if that is one thing; else its name.
    fn called(&self, place: usize, by: &str, function: Markup) -> Markup {
        let moved = self.of_message(place);
        let shown = |of: &Transfer| movements::amount(self.explorer, of);
        match &*moved {
            [only] => match (only.from.as_str(), only.to.as_str()) {
                ("", to) => html! { (shown(only)) " was minted for " (self.party(to)) ", by " (function) },
                (from, "") => html! { (self.party(from)) " burned " (shown(only)) ", by " (function) },
                (from, to) => {
                    html! { (self.party(from)) " sent " (shown(only)) " to " (self.party(to)) ", by " (function) }
                }
            },
            [first, .., last] if self.is_swap(by, first, last) => html! {
                (self.party(by)) " swapped " (shown(first)) " for " (shown(last)) ", by " (function)
            },
            _ => html! { (self.party(by)) " called " (function) },
        }
    }

    /// True if the account `by` gave one token and got another one.
    fn is_swap(&self, by: &str, first: &Transfer, last: &Transfer) -> bool {
        let fungible = |of: &Transfer| of.token.as_ref().is_some_and(|token| !is_nft(&token.r#type));
        let token = |of: &Transfer| of.token.clone().map(|token| movements::name(&token).to_owned());
        fungible(first)
            && fungible(last)
            && token(first) != token(last)
            && self.is_same(by, &first.from)
            && self.is_same(by, &last.to)
    }

    /// True if two texts are spellings of one account.
    fn is_same(&self, one: &str, other: &str) -> bool {
        let parse = |text: &str| chain::Account::parse(text, self.explorer.prefix());
        parse(one).is_some_and(|one| parse(other) == Some(one))
    }

    /// The movements of a message.
    fn of_message(&self, place: usize) -> Vec<&Transfer> {
        let is_of =
            |of: &&Transfer| of.msg_index.and_then(|index| usize::try_from(index).ok()) == Some(place);
        self.transfers.iter().filter(is_of).collect()
    }

    /// A packet that a relayer brought: `end` is the one on this chain.
    fn relayed(&self, packet: &Value, end: &str, what: &str) -> Markup {
        let text = |name: &str| packet[name].as_str().unwrap_or_default();
        let (port, channel) = (text(&format!("{end}_port")), text(&format!("{end}_channel")));
        let sequence = text("sequence").parse::<u64>().unwrap_or_default();
        let known =
            self.packets.iter().find(|of| of.sequence == sequence && packets::own_end(of) == (port, channel));
        let data = known.and_then(|of| of.data.clone());
        html! {
            "Packet " (packets::named(known.is_some(), channel, port, sequence)) " of " (cell(channel)) " " (what)
            // Its data says only what was to be done.
            @if let Some(of) = known.filter(|of| of.state == "failed") { " (" (packets::state(&of.state)) ")" }
            @if let Some(data) = data {
                ": " (packets::content(self.explorer, &data))
                @if !data.receiver.is_empty() { " for " (self.party(&data.receiver)) }
            }
        }
    }

    /// The channel and the packet that a message sent.
    fn sent_packet(&self, place: usize, channel: &str) -> Markup {
        let is_of = |of: &&IbcPacket| {
            let index = of.send.as_ref().and_then(|stage| stage.msg_index);
            of.source_channel == channel && index.and_then(|index| usize::try_from(index).ok()) == Some(place)
        };
        let packet = self.packets.iter().find(is_of);
        html! {
            (cell(channel))
            @if let Some(of) = packet {
                " (packet " (packets::named(true, channel, packets::own_end(of).0, of.sequence)) ", " (packets::state(&of.state)) ")"
            }
        }
    }

    fn coins(&self, amount: &Value) -> Markup {
        let list: Vec<Coin> = match amount {
            Value::Array(_) => serde_json::from_value(amount.clone()).unwrap_or_default(),
            one => serde_json::from_value(one.clone()).ok().into_iter().collect(),
        };
        coins(self.explorer, &list)
    }

    fn party(&self, address: &str) -> Markup {
        match address {
            "" => html! { "somebody" },
            _ if self.explorer.is_account(address) => account(address),
            _ => cell(address),
        }
    }
}

/// The type of a message.
fn kind(message: &Value) -> &str {
    message["@type"].as_str().unwrap_or_default()
}

fn is_exec(message: &Value) -> bool {
    kind(message) == "/cosmos.authz.v1beta1.MsgExec"
}

/// The account that a message is of, by the names that modules give it.
pub(super) fn signer(message: &Value) -> &str {
    const NAMES: [&str; 9] = [
        "sender",
        "from_address",
        "delegator_address",
        "voter",
        "granter",
        "signer",
        "authority",
        "creator",
        "proposer",
    ];
    NAMES.iter().find_map(|name| message[*name].as_str()).unwrap_or_default()
}

fn nfts(ids: &Value, class: &str) -> Markup {
    let ids = ids.as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        @if let [only] = ids { "token " (cell(only.as_str().unwrap_or_default())) } @else { (count(ids.len())) " tokens" }
        " of " span.denom title=(chain::truncated(class, 300)) { (short(class)) }
    }
}

/// `MsgSetBridgeInfo` as `set bridge info`.
fn words(name: &str) -> String {
    let name = name.strip_prefix("Msg").filter(|rest| !rest.is_empty()).unwrap_or(name);
    let mut words = String::with_capacity(name.len() + 8);
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_becomes_words() {
        assert_eq!(words("MsgSetBridgeInfo"), "set bridge info");
        assert_eq!(words("Msg"), "msg");
        assert_eq!(words(""), "");
    }
}
