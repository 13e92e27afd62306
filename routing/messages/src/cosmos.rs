//! The messages of one transaction of a Cosmos chain: which kinds of hops make one, and the plain send.

use planner::Step;
use registry::AssetRef;

use crate::amino::{BankSend, Coin};
use crate::error::BuildError;
use crate::request::Msg;
use crate::tx_builder::{TxBuilder, invalid_plan};

impl TxBuilder<'_> {
    /// The messages, in order.
    pub(crate) fn cosmos(&self) -> Result<Vec<Msg>, BuildError> {
        let steps: Vec<Step> = self.hops.iter().map(|hop| hop.step).collect();
        match steps.as_slice() {
            [Step::Send] => Ok(vec![self.bank_send()]),
            [Step::LayerZero { .. }] => self.omnichain(),
            [Step::Wrap] => self.wrap(),
            [Step::Unwrap] => self.unwrap(&self.hops[0], self.end),
            [Step::Deposit { bridge }] => Ok(vec![self.deposit(*bridge)]),
            [Step::Deposit { bridge }, Step::Wrap] => Ok(vec![self.deposit_and_wrap(*bridge)?]),
            [Step::Withdraw { .. }] => Ok(vec![self.withdraw()?]),
            [Step::Unwrap, Step::Withdraw { .. }] => self.unwrap_and_withdraw(),
            [Step::MigratedWithdraw { .. }, ..] => self.migrate(self.hops),
            [Step::Unwrap, Step::MigratedWithdraw { .. }, ..] => self.unwrap_and_migrate(),
            [Step::Ibc { .. } | Step::MigratedDeposit { .. }, ..] => {
                let denom = &self.request.registry[self.hops[0].from].denom;
                Ok(vec![self.transfer(self.hops, denom)?])
            }
            [Step::Unwrap, Step::Ibc { .. }, ..] => self.unwrap_and_transfer(),
            [Step::Swap, ..] => self.swap(),
            _ => Err(invalid_plan(format!("no single transaction does this: {}", self.describe()))),
        }
    }

    fn bank_send(&self) -> Msg {
        let hop = &self.hops[0];
        let send = BankSend {
            from_address: self.signer.text.clone(),
            to_address: self.end.text.clone(),
            amount: [Coin::new(self.denom(hop.from), hop.amount_in)],
        };
        Msg::new("/cosmos.bank.v1beta1.MsgSend", &send)
    }

    pub(crate) fn denom(&self, asset: AssetRef) -> &str {
        &self.request.registry[asset].denom
    }
}
