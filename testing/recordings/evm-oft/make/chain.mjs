// One local EVM chain: started, sent transactions, asked questions, and every answer to be kept written down.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { setTimeout as pause } from "node:timers/promises";
import { encodeDeployData, encodeFunctionData, decodeFunctionResult, getContractAddress } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { ARTIFACTS } from "./artifacts.mjs";
import { ACCOUNTS } from "./accounts.cjs";

const GENESIS = Date.parse("2025-01-01T00:00:00Z") / 1000;
const BLOCK_SECONDS = 12;

export const account = (name) => privateKeyToAccount(ACCOUNTS[name]);

export class Chain {
  constructor(name, id, eid, port) {
    Object.assign(this, { name, id, eid, url: `http://127.0.0.1:${port}`, port });
    this.deployer = account(`deployer${name}`);
    this.lines = [];
    this.asked = new Set();
    this.hashes = [];
    this.time = GENESIS;
  }

  async start() {
    const cli = createRequire(import.meta.url).resolve("hardhat/internal/cli/bootstrap.js");
    const args = [cli, "--config", "hardhat.config.cjs", "node", "--port", String(this.port)];
    const env = { ...process.env, CHAIN_ID: String(this.id), HARDHAT_DISABLE_TELEMETRY_PROMPT: "true" };
    this.process = spawn(process.execPath, args, { cwd: import.meta.dirname, env, stdio: ["ignore", "ignore", "inherit"] });
    for (let tries = 0; tries < 100; tries += 1) {
      const up = await this.rpc("eth_chainId", []).catch(() => undefined);
      if (up) return;
      await pause(200);
    }
    throw new Error(`chain ${this.name} did not answer within 20 s`);
  }

  stop() {
    this.process.kill();
  }

  async rpc(method, params) {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const response = await fetch(this.url, { method: "POST", headers: { "content-type": "application/json" }, body });
    const { result, error } = await response.json();
    return error === undefined ? { result } : { error };
  }

  async want(method, params) {
    const { result, error } = await this.rpc(method, params);
    if (error) throw new Error(`${this.name} ${method}: ${error.message}`);
    return result;
  }

  // Asks, keeps the question with its answer, and gives the answer.
  async record(method, params = []) {
    const outcome = await this.rpc(method, params);
    const key = JSON.stringify([method, params]);
    if (!this.asked.has(key)) {
      this.asked.add(key);
      this.lines.push({ kind: "eth", method, params, ...outcome });
    }
    return outcome;
  }

  // Signs, sends and mines a transaction; fails unless its status is the one expected. Gives the receipt.
  async send(from, { to, data = "0x", value = 0n, gas, status = "0x1" }) {
    const sender = from.address.toLowerCase();
    const nonce = Number(await this.want("eth_getTransactionCount", [sender, "latest"]));
    this.time += BLOCK_SECONDS;
    await this.want("evm_setNextBlockTimestamp", [this.time]);
    const raw = await from.signTransaction({
      type: "eip1559",
      chainId: this.id,
      nonce,
      to,
      data,
      value,
      gas: gas ?? 8_000_000n,
      maxFeePerGas: 10_000_000_000n,
      maxPriorityFeePerGas: 1_000_000_000n,
    });
    // A node that mines at once reports a revert here although the transaction is in a block: the receipt decides.
    await this.rpc("eth_sendRawTransaction", [raw]);
    const latest = await this.want("eth_getBlockByNumber", ["latest", false]);
    const receipt = await this.want("eth_getTransactionReceipt", [latest.transactions[0]]);
    if (receipt.from !== sender || receipt.status !== status) {
      throw new Error(`${this.name}: ${receipt.transactionHash} has status ${receipt.status}, expected ${status}`);
    }
    this.hashes.push(receipt.transactionHash);
    return receipt;
  }

  async deploy(name, args = []) {
    const { abi, bytecode } = ARTIFACTS[name];
    const nonce = BigInt(await this.want("eth_getTransactionCount", [this.deployer.address.toLowerCase(), "latest"]));
    const data = encodeDeployData({ abi, bytecode, args });
    await this.send(this.deployer, { data, gas: 12_000_000n });
    return getContractAddress({ from: this.deployer.address, nonce }).toLowerCase();
  }

  // Sends a call of a contract's function, by default as the deployer.
  call(contract, to, functionName, args, { from = this.deployer, ...rest } = {}) {
    const data = encodeFunctionData({ abi: ARTIFACTS[contract].abi, functionName, args });
    return this.send(from, { to, data, ...rest });
  }

  // Asks a contract in the latest state, records it, and gives the decoded result or undefined for a revert.
  async view(contract, to, functionName, args = []) {
    const { abi } = ARTIFACTS[contract];
    const data = encodeFunctionData({ abi, functionName, args });
    const { result } = await this.record("eth_call", [{ to, data }, "latest"]);
    return result && decodeFunctionResult({ abi, functionName, data: result });
  }
}
