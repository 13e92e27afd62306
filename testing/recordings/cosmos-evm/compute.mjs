// Computes what the contracts of this chain reply to calls, which was not recorded: executes all recorded transactions in another
// EVM, fails unless each has the recorded result, logs and contract, and calls the contracts in the state after each block.
//
// The list of validators was not recorded either: the only one has the account that the EVM's headers name, and the name of its node.
//
// npm install @ethereumjs/vm@10 bech32@2 && node compute.mjs | zstd -19 > extra.ndjson.zst
import { execFileSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createBlock } from '@ethereumjs/block';
import { Hardfork, Mainnet, createCustomCommon } from '@ethereumjs/common';
import { createTxFromRLP } from '@ethereumjs/tx';
import { Account, bytesToHex, createAddressFromString, hexToBytes } from '@ethereumjs/util';
import { createVM, runTx } from '@ethereumjs/vm';
import { bech32 } from 'bech32';

const folder = process.env.RECORDING ?? dirname(fileURLToPath(import.meta.url));
const read = (file) =>
  execFileSync('zstd', ['-dc', join(folder, file)], { maxBuffer: 1 << 30, encoding: 'utf8' }).trim().split('\n').map((line) => JSON.parse(line));

const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const DEPOSIT = '0xe1fffcc4923d04b559f4d29a8bfc6cda04eb5b0d3c460751c2402c5c5cc9109c';
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

const { node_info, validator_info } = state.find((line) => line.kind === 'cometbft' && line.path === '/status').answer;
const validator = {
  operator_address: bech32.encode('cosmosvaloper', bech32.toWords(hexToBytes(blocks[0].eth_block.miner))),
  consensus_pubkey: { '@type': '/cosmos.crypto.ed25519.PubKey', key: validator_info.pub_key.value },
  description: { moniker: node_info.moniker },
};
const path = '/cosmos/staking/v1beta1/validators?pagination.limit=1000';
const answer = { validators: [validator], pagination: { next_key: null, total: '1' } };
console.log(JSON.stringify({ kind: 'rest', method: 'GET', path, height: null, status: 200, answer }));

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
      const values = [...topics.slice(1), ...(data.slice(2).match(/.{64}/g) ?? [])].map(word);
      if (topics[0] === TRANSFER && topics.length === 4) ofToken(values[2]).forEach((call) => calls.add(call));
      if (topics[0] === TRANSFER && topics.length === 3) {
        calls.add(balanceOf(values[1]));
        // Nothing is asked about what is minted.
        if (BigInt(topics[1]) !== 0n) calls.add(balanceOf(values[0]));
      }
      if (topics[0] === DEPOSIT) calls.add(balanceOf(values[0]));
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
