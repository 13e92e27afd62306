//! EVM calldata of the contracts that a route calls.
//!
//! The signatures are those of the deployed contracts: ERC-20, minievm's ERC20Wrapper (`router-mechanics.md` §2.4) and
//! LayerZero's OFT (§4.7). Each overload of the wrapper is declared in a separate interface, to give it a distinct
//! name.

use alloy::primitives::{Address, B256, Bytes};
use alloy::sol_types::SolCall as _;
use chain::U256;

#[allow(missing_docs, clippy::pedantic, reason = "generated from the contracts' interfaces")]
pub(crate) mod sol {
    alloy::sol! {
        interface Erc20 {
            function approve(address spender, uint256 amount) external returns (bool);
            function transfer(address to, uint256 amount) external returns (bool);
        }

        interface WrapAll {
            function toLocal(address receiver, string remoteDenom, uint8 remoteDecimals) external;
        }

        interface Wrapper {
            function toLocal(address receiver, string remoteDenom, uint256 remoteAmount, uint8 remoteDecimals) external;
            function toRemote(address receiver, string localDenom, uint256 localAmount) external;
            function toRemoteAndOPWithdraw(string receiver, string localDenom, uint256 localAmount) external;
            function toRemoteAndIBCTransfer(string localDenom, uint256 localAmount, string channel, string receiver, uint256 timeout) external;
        }

        interface WrapperWithMemo {
            function toRemoteAndIBCTransfer(string localDenom, uint256 localAmount, string channel, string receiver, uint256 timeout, string memo) external;
        }

        interface WrapperViews {
            function remoteTokens(address localToken) external view returns (address remoteToken);
            function remoteDecimals(address localToken) external view returns (uint8 decimals);
        }

        struct SendParam {
            uint32 dstEid;
            bytes32 to;
            uint256 amountLD;
            uint256 minAmountLD;
            bytes extraOptions;
            bytes composeMsg;
            bytes oftCmd;
        }

        struct MessagingFee {
            uint256 nativeFee;
            uint256 lzTokenFee;
        }

        struct OFTLimit {
            uint256 minAmountLD;
            uint256 maxAmountLD;
        }

        struct OFTFeeDetail {
            int256 feeAmountLD;
            string description;
        }

        struct OFTReceipt {
            uint256 amountSentLD;
            uint256 amountReceivedLD;
        }

        interface Oft {
            function quoteOFT(SendParam sendParam) external view returns (OFTLimit limit, OFTFeeDetail[] details, OFTReceipt receipt);
            function quoteSend(SendParam sendParam, bool payInLzToken) external view returns (MessagingFee fee);
            function send(SendParam sendParam, MessagingFee fee, address refundAddress) external payable;
        }
    }
}

/// ERC-20: `spender` may take `amount` of the caller's.
pub(crate) fn approve(spender: Address, amount: U256) -> Vec<u8> {
    sol::Erc20::approveCall { spender, amount }.abi_encode()
}

/// ERC-20: moves `amount` of the caller's.
pub(crate) fn transfer(to: Address, amount: U256) -> Vec<u8> {
    sol::Erc20::transferCall { to, amount }.abi_encode()
}

/// Wraps as much as the caller has and allows.
pub(crate) fn wrap_all(receiver: Address, remote_denom: &str, remote_decimals: u8) -> Vec<u8> {
    let (remote_denom, remote_decimals) = (remote_denom.to_owned(), remote_decimals);
    sol::WrapAll::toLocalCall { receiver, remoteDenom: remote_denom, remoteDecimals: remote_decimals }
        .abi_encode()
}

/// Makes the local token of `amount` of the remote one.
pub(crate) fn wrap(receiver: Address, remote_denom: &str, amount: U256, remote_decimals: u8) -> Vec<u8> {
    sol::Wrapper::toLocalCall {
        receiver,
        remoteDenom: remote_denom.to_owned(),
        remoteAmount: amount,
        remoteDecimals: remote_decimals,
    }
    .abi_encode()
}

/// Gives the remote token for `amount` of the local one.
pub(crate) fn unwrap(receiver: Address, local_denom: &str, amount: U256) -> Vec<u8> {
    sol::Wrapper::toRemoteCall { receiver, localDenom: local_denom.to_owned(), localAmount: amount }
        .abi_encode()
}

/// [`unwrap`], and a withdrawal of the coin to `receiver` on the L1.
pub(crate) fn unwrap_and_withdraw(receiver: &str, local_denom: &str, amount: U256) -> Vec<u8> {
    sol::Wrapper::toRemoteAndOPWithdrawCall {
        receiver: receiver.to_owned(),
        localDenom: local_denom.to_owned(),
        localAmount: amount,
    }
    .abi_encode()
}

/// Where a packet goes that the wrapper sends.
pub(crate) struct Packet {
    pub(crate) channel: String,
    pub(crate) receiver: String,
    /// Unix time in nanoseconds.
    pub(crate) timeout: u64,
    /// Empty for none.
    pub(crate) memo: String,
}

/// [`unwrap`], and an ICS-20 transfer of the coin.
pub(crate) fn unwrap_and_transfer(local_denom: &str, amount: U256, packet: Packet) -> Vec<u8> {
    let Packet { channel, receiver, timeout, memo } = packet;
    let (local_denom, timeout) = (local_denom.to_owned(), U256::from(timeout));
    if memo.is_empty() {
        return sol::Wrapper::toRemoteAndIBCTransferCall {
            localDenom: local_denom,
            localAmount: amount,
            channel,
            receiver,
            timeout,
        }
        .abi_encode();
    }
    sol::WrapperWithMemo::toRemoteAndIBCTransferCall {
        localDenom: local_denom,
        localAmount: amount,
        channel,
        receiver,
        timeout,
        memo,
    }
    .abi_encode()
}

/// Arguments of an OFT's `send`.
pub(crate) struct OftSend {
    pub(crate) destination: u32,
    pub(crate) to: [u8; 32],
    pub(crate) amount: U256,
    pub(crate) least: U256,
    pub(crate) options: Vec<u8>,
    /// Base units of the chain's coin.
    pub(crate) fee: U256,
    pub(crate) refund: Address,
}

/// LayerZero: sends tokens to another chain, without composed message or command, the fee paid in the chain's coin.
pub(crate) fn oft_send(send: OftSend) -> Vec<u8> {
    sol::Oft::sendCall {
        sendParam: sol::SendParam {
            dstEid: send.destination,
            to: B256::from(send.to),
            amountLD: send.amount,
            minAmountLD: send.least,
            extraOptions: Bytes::from(send.options),
            composeMsg: Bytes::new(),
            oftCmd: Bytes::new(),
        },
        fee: sol::MessagingFee { nativeFee: send.fee, lzTokenFee: U256::ZERO },
        refundAddress: send.refund,
    }
    .abi_encode()
}
