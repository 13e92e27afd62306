//! What a movement is for.

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)+) => {
        /// What a movement is for. A later version may know more.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Kind {
            $($(#[$doc])* $name,)+
        }

        impl Kind {
            /// Every kind; the place of a kind is its number on disk.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// Its name on the wire.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)+
                }
            }
        }
    };
}

kinds! {
    /// From one account to another.
    Transfer = "transfer",
    /// The fee of a transaction.
    Fee = "fee",
    /// A part of the fee that is given back.
    FeeRefund = "fee_refund",
    /// What did not exist before.
    Mint = "mint",
    /// What exists no more.
    Burn = "burn",
    /// To another chain by IBC.
    IbcOut = "ibc_out",
    /// From another chain by IBC.
    IbcIn = "ibc_in",
    /// Back from a packet that was not delivered.
    IbcRefund = "ibc_refund",
    /// Into an OPinit bridge.
    BridgeOut = "bridge_out",
    /// Out of an OPinit bridge.
    BridgeIn = "bridge_in",
    /// To or from the staking pools.
    Stake = "stake",
    /// A reward of staking.
    Reward = "reward",
}
