//! Solidity interfaces of the contracts that a route calls.
//!
//! The signatures are those of the deployed contracts: ERC-20, minievm's ERC20Wrapper and
//! LayerZero's OFT. Each overload of the wrapper is declared in a separate interface, to give it a distinct name.

#![allow(missing_docs, clippy::pedantic, reason = "generated from the contracts' interfaces")]

alloy::sol! {
    interface Erc20 {
        function approve(address spender, uint256 amount) external returns (bool);
        function transfer(address to, uint256 amount) external returns (bool);
    }

    interface Erc721 {
        function transferFrom(address from, address to, uint256 tokenId) external;
    }

    /// Wraps the whole balance of the caller, up to the allowance.
    interface WrapAll {
        function toLocal(address receiver, string remoteDenom, uint8 remoteDecimals) external;
    }

    /// Denominations are those of the token that the caller gives; timeouts are Unix time in nanoseconds.
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

    interface OftViews {
        function sharedDecimals() external view returns (uint8);
        function token() external view returns (address);
        function approvalRequired() external view returns (bool);
        function peers(uint32 eid) external view returns (bytes32 peer);
        function decimals() external view returns (uint8);
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
