// Published clients of Etherscan's API over a recorded chain: @wagmi/cli and hardhat-verify.
// node explorers.mjs EVM_URL ABI_DIR VERIFIER, of `cairn demo --recording ../recordings/evm-fees --evm-listen ADDR --abi ABI_DIR
// --sourcify VERIFIER`, where VERIFIER is an address at which this program plays a server of Sourcify.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import hardhat from "@nomicfoundation/hardhat-verify/etherscan.js";
import { JsonRpcProvider } from "ethers";

const [url, abiDir, verifier] = process.argv.slice(2);
const api = `${url.replace(/\/$/, "")}/api`;
const chainId = 0x7122181e20277;
const get = async (query) => (await fetch(`${api}?${query}`)).json();

// Contracts of the chain: one becomes known by a file, one is verified on the server, one is unknown.
const provider = new JsonRpcProvider(url);
const created = [];
for (let number = 1; created.length < 3; number++) {
  const block = await provider.getBlock(number);
  for (const hash of block.transactions) {
    const { contractAddress } = await provider.getTransactionReceipt(hash);
    if (contractAddress) created.push(contractAddress.toLowerCase());
  }
}
const [known, verified, unknown] = created;
const abi = [{ type: "function", name: "transfer", stateMutability: "nonpayable", outputs: [{ type: "bool", name: "" }],
  inputs: [{ type: "address", name: "to" }, { type: "uint256", name: "value" }] }];
writeFileSync(join(abiDir, `${known}.json`), JSON.stringify({ contractName: "Known", abi }));

// Sourcify's API, version 2, as its documentation has it.
const guid = "72d12273-0723-448e-a9f6-f7957128efa5";
const submitted = [];
const server = createServer((request, response) => {
  let body = "";
  request.on("data", (part) => (body += part));
  request.on("end", () => {
    const reply = (status, json) => {
      response.writeHead(status, { "content-type": "application/json" });
      response.end(JSON.stringify(json));
    };
    const { pathname } = new URL(request.url, verifier);
    if (pathname === `/v2/contract/${chainId}/${verified}`) {
      return reply(200, { match: "exact_match", chainId: String(chainId), address: verified, abi,
        compilation: { language: "Solidity", compilerVersion: "0.8.28+commit.7893614a", name: "Verified",
          compilerSettings: { optimizer: { enabled: true, runs: 200 } } },
        sources: { "Verified.sol": { content: "contract Verified {}" } } });
    }
    if (pathname.startsWith("/v2/contract/")) return reply(404, { match: null });
    if (request.method === "POST" && pathname === `/v2/verify/${chainId}/${unknown}`) {
      submitted.push(JSON.parse(body));
      return reply(202, { verificationId: guid });
    }
    if (request.method === "POST" && pathname === `/v2/verify/${chainId}/${verified}`) {
      return reply(409, { customCode: "already_verified", message: "The contract is already verified", errorId: "1" });
    }
    if (pathname === `/v2/verify/${guid}`) {
      return reply(200, { isJobCompleted: true, verificationId: guid, contract: { match: "exact_match" } });
    }
    reply(404, { customCode: "job_not_found", message: "no such verification", errorId: "2" });
  });
});
const { hostname, port } = new URL(verifier);
await new Promise((resolve) => server.listen(Number(port), hostname, resolve));

// @wagmi/cli: generates code from the ABI of its plugin.
const work = mkdtempSync(join(tmpdir(), "wagmi-"));
const generate = async (address) => {
  const plugin = `blockExplorer({ baseUrl: "${api}", contracts: [{ name: "Token", address: "${address}" }], cacheDuration: 0 })`;
  writeFileSync(join(work, "wagmi.config.mjs"),
    `import { blockExplorer } from "${fileURLToPath(import.meta.resolve("@wagmi/cli/plugins"))}";
export default { out: "${work}/generated.js", contracts: [], plugins: [${plugin}] };`);
  const cli = fileURLToPath(new URL("../cli.js", import.meta.resolve("@wagmi/cli")));
  const env = { ...process.env, HOME: work };
  await promisify(execFile)(process.execPath, [cli, "generate", "--config", join(work, "wagmi.config.mjs")], { env, cwd: work });
  return readFileSync(join(work, "generated.js"), "utf8");
};
for (const address of [known, verified]) {
  assert.match(await generate(address), /tokenAbi[\s\S]*name: 'transfer'/);
}
await assert.rejects(generate(unknown), /Contract source code not verified/);

// hardhat-verify: what is verified, a verification to its end, and one that exists.
const { Etherscan } = hardhat;
const client = new Etherscan("any", api, url, undefined);
assert.equal(await client.isVerified(verified), true);
assert.equal(await client.isVerified(unknown), false);
assert.equal(await client.isVerified(known), false, "an ABI alone is no source");
const input = JSON.stringify({ language: "Solidity", sources: { "A.sol": { content: "contract A {}" } }, settings: {} });
const begun = await client.verify(unknown, input, "A.sol:A", "v0.8.28+commit.7893614a", "");
assert.equal(begun.message, guid);
assert.equal(submitted[0].compilerVersion, "0.8.28+commit.7893614a");
assert.equal(submitted[0].contractIdentifier, "A.sol:A");
assert.deepEqual(submitted[0].stdJsonInput, JSON.parse(input));
assert.match(submitted[0].creationTransactionHash, /^0x[0-9a-f]{64}$/);
assert.ok((await client.getVerificationStatus(guid)).isSuccess());
assert.ok((await client.getVerificationStatus("00000000-0000")).isFailure());
await assert.rejects(client.verify(verified, input, "A.sol:A", "v0.8.28+commit.7893614a", ""), /already verified/i);

assert.equal((await get(`module=contract&action=getabi&address=${unknown}`)).result, "Contract source code not verified");
server.close();
server.closeAllConnections();
console.log("explorers: @wagmi/cli and hardhat-verify read a contract by file, by server, and verify one");
