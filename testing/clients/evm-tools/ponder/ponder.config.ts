// All transfers of a token, from the first block to the head of the recorded chain.
import { createConfig } from "ponder";
import { parseAbiItem } from "viem";

export const abi = [
  parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)"),
] as const;

export default createConfig({
  chains: {
    rollup: { id: Number(process.env.CHAIN_ID), rpc: process.env.RPC_URL!, pollingInterval: 200 },
  },
  contracts: {
    Token: {
      chain: "rollup",
      abi,
      address: process.env.TOKEN as `0x${string}`,
      startBlock: 1,
      includeTransactionReceipts: true,
    },
  },
  blocks: { Every: { chain: "rollup", startBlock: 1, interval: 100 } },
});
