// SPDX-License-Identifier: MIT
pragma solidity 0.8.30;

import { Ownable } from "@openzeppelin/contracts/access/Ownable.sol";
import { ERC20 } from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import { OFT } from "@layerzerolabs/oft-evm/contracts/OFT.sol";
import { OFTAdapter } from "@layerzerolabs/oft-evm/contracts/OFTAdapter.sol";
import { NativeOFTAdapter } from "@layerzerolabs/oft-evm/contracts/NativeOFTAdapter.sol";

/// A token that knows nothing of LayerZero.
contract PlainToken is ERC20 {
    constructor(string memory name, string memory symbol, address holder, uint256 supply) ERC20(name, symbol) {
        _mint(holder, supply);
    }
}

/// A token that is its own OFT; nothing of the library's code is overridden.
contract OmnichainToken is OFT {
    constructor(string memory name, string memory symbol, address endpoint, address owner, address holder, uint256 supply)
        OFT(name, symbol, endpoint, owner)
        Ownable(owner)
    {
        _mint(holder, supply);
    }
}

/// The lockbox of a plain token.
contract TokenLockbox is OFTAdapter {
    constructor(address token, address endpoint, address owner) OFTAdapter(token, endpoint, owner) Ownable(owner) {}
}

/// The lockbox of the chain's own coin.
contract CoinLockbox is NativeOFTAdapter {
    constructor(address endpoint, address owner) NativeOFTAdapter(18, endpoint, owner) Ownable(owner) {}
}
