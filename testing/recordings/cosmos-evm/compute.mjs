// Computes what the contracts of this chain reply to calls, which was not recorded: executes all recorded transactions in another
// EVM, fails unless each has the recorded result, logs and contract, and calls the contracts in the state after each block.
//
// npm install @ethereumjs/vm@10 && node compute.mjs | zstd -19 > extra.ndjson.zst
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createBlock } from '@ethereumjs/block';
import { Hardfork, Mainnet, createCustomCommon } from '@ethereumjs/common';
import { createTxFromRLP } from '@ethereumjs/tx';
import { Account, bytesToHex, createAddressFromString, hexToBytes } from '@ethereumjs/util';
import { createVM, runTx } from '@ethereumjs/vm';

const folder = process.env.RECORDING ?? dirname(fileURLToPath(import.meta.url));
const read = (file) =>
  execFileSync('zstd', ['-dc', join(folder, file)], { maxBuffer: 1 << 30, encoding: 'utf8' }).trim().split('\n').map((line) => JSON.parse(line));

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const word = (hex) => hex.replace(/^0x/, '').padStart(64, '0');
const OF_CONTRACT = ['0x06fdde03', '0x95d89b41', '0x313ce567', '0x18160ddd', `0x01ffc9a7${'80ac58cd'.padEnd(64, '0')}`];
const ofToken = (id) => ['0x6352211e', '0xc87b56dd'].map((selector) => selector + word(id));
const balanceOf = (account) => `0x70a08231${word(account)}`;

const blocks = read('blocks.ndjson.zst');
const state = read('state.ndjson.zst');
const chainId = Number(state.find((line) => line.kind === 'eth' && line.method === 'eth_chainId').result);
const common = createCustomCommon({ chainId }, Mainnet, { hardfork: Hardfork.Prague });
const vm = await createVM({ common });

async function execute(raw, receipt, block) {
  const tx = createTxFromRLP(hexToBytes(raw), { common });
  const sender = tx.getSenderAddress();
  // What it pays for gas is another amount here, so it has enough.
  const account = (await vm.stateManager.getAccount(sender)) ?? new Account();
  account.nonce = tx.nonce;
  account.balance = 10n ** 30n;
  await vm.stateManager.putAccount(sender, account);
  let result;
  try {
    result = await runTx(vm, { tx, block, skipBlockGasLimitValidation: true });
  } catch {
    result = undefined;
  }
  const succeeded = result !== undefined && !result.execResult.exceptionError;
  const logs = succeeded ? result.execResult.logs ?? [] : [];
  const found = JSON.stringify([succeeded, logs.map(([address, topics, data]) => [address, ...topics, data].map(bytesToHex))]);
  const recorded = JSON.stringify([receipt.status === '0x1', receipt.logs.map((log) => [log.address, ...log.topics, log.data])]);
  const created = succeeded && receipt.contractAddress ? result.createdAddress?.toString() : receipt.contractAddress;
  if (found !== recorded || created !== receipt.contractAddress) {
    throw new Error(`${receipt.transactionHash}: ${found} and not ${recorded}`);
  }
}

async function ask(to, data, height, block) {
  const call = { to: createAddressFromString(to), data: hexToBytes(data), gasLimit: 25_000_000n, block };
  // Without its effects.
  await vm.stateManager.checkpoint();
  const { execResult } = await vm.evm.runCall(call);
  await vm.stateManager.revert();
  const line = { kind: 'eth_call', to, data, height };
  const error = execResult.exceptionError?.error;
  if (error === 'revert') {
    line.error = { code: 3, message: 'execution reverted', data: bytesToHex(execResult.returnValue) };
  } else if (error) {
    line.error = { code: -32000, message: error };
  } else {
    line.result = bytesToHex(execResult.returnValue);
  }
  console.log(JSON.stringify(line));
}

const all = new Map();
let txs = 0;
for (const { height, eth_block, eth_receipts, rest_txs } of blocks) {
  const { timestamp, miner: coinbase, gasLimit, baseFeePerGas } = eth_block;
  const header = { number: height, timestamp, coinbase, gasLimit, baseFeePerGas };
  const block = createBlock({ header }, { common, skipConsensusFormatValidation: true });
  const messages = (rest_txs ?? []).flatMap((tx) => tx.body.messages).filter((message) => message.raw);
  const now = new Map();
  for (const [at, receipt] of (eth_receipts ?? []).entries()) {
    await execute(messages[at].raw, receipt, block);
    txs += 1;
    for (const { address, topics, data } of receipt.logs) {
      if (!now.has(address)) now.set(address, new Set(OF_CONTRACT));
      const calls = now.get(address);
      const values = [...topics.slice(1), ...(data.slice(2).match(/.{64}/g) ?? [])].map((value) => word(value));
      const ids = topics[0] === TRANSFER ? values.slice(2) : [];
      for (const id of ids) ofToken(id).forEach((call) => calls.add(call));
      for (const value of values.filter((value) => value.startsWith('0'.repeat(24)) && BigInt(`0x${value}`) >> 64n)) {
        calls.add(balanceOf(value));
      }
    }
  }
  for (const [address, calls] of now) {
    for (const data of calls) await ask(address, data, height, block);
    all.set(address, new Set([...(all.get(address) ?? []), ...calls]));
  }
  if (height === blocks.at(-1).height) {
    for (const [address, calls] of all) {
      for (const data of calls) if (!now.get(address)?.has(data)) await ask(address, data, height, block);
    }
  }
}
console.error(`${txs} transactions have the recorded results`);
