// Bytecode and ABI: LayerZero's own contracts as published, our tokens compiled here.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import solc from "solc";

const require = createRequire(import.meta.url);

function published(pkg, path) {
  const name = path.split("/").pop();
  const { abi, bytecode } = require(`@layerzerolabs/${pkg}/artifacts/contracts/${path}.sol/${name}.json`);
  return { abi, bytecode };
}

function compiled() {
  const source = readFileSync(new URL("Tokens.sol", import.meta.url), "utf8");
  const input = {
    language: "Solidity",
    sources: { "Tokens.sol": { content: source } },
    settings: {
      evmVersion: "cancun",
      optimizer: { enabled: true, runs: 200 },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } },
    },
  };
  const found = (path) => ({ contents: readFileSync(new URL(`node_modules/${path}`, import.meta.url), "utf8") });
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: found }));
  const errors = (output.errors ?? []).filter((e) => e.severity === "error");
  if (errors.length > 0) throw new Error(errors.map((e) => e.formattedMessage).join("\n"));
  const contracts = Object.entries(output.contracts["Tokens.sol"]);
  return Object.fromEntries(
    contracts.map(([name, c]) => [name, { abi: c.abi, bytecode: `0x${c.evm.bytecode.object}` }]),
  );
}

export const ARTIFACTS = {
  EndpointV2: published("lz-evm-protocol-v2", "EndpointV2"),
  SendUln302: published("lz-evm-messagelib-v2", "uln/uln302/SendUln302"),
  ReceiveUln302: published("lz-evm-messagelib-v2", "uln/uln302/ReceiveUln302"),
  PriceFeed: published("lz-evm-messagelib-v2", "PriceFeed"),
  Executor: published("lz-evm-messagelib-v2", "Executor"),
  ExecutorFeeLib: published("lz-evm-messagelib-v2", "ExecutorFeeLib"),
  DVN: published("lz-evm-messagelib-v2", "uln/dvn/DVN"),
  DVNFeeLib: published("lz-evm-messagelib-v2", "uln/dvn/DVNFeeLib"),
  ...compiled(),
};
