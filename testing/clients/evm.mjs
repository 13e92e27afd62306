// Published Ethereum libraries over cairn's JSON-RPC of a recorded chain: ethers and viem.
// node evm.mjs EVM_URL, of `cairn demo --recording ../recordings/evm-fees --evm-listen ADDR`.
import assert from "node:assert/strict";
import { Contract, Interface, JsonRpcProvider, WebSocketProvider } from "ethers";
import { createPublicClient, defineChain, http, parseAbiItem, webSocket } from "viem";
import WebSocket from "ws";

// viem takes the WebSocket of the platform, which Node has from version 22 on.
globalThis.WebSocket ??= WebSocket;

const [url] = process.argv.slice(2);
const wsUrl = url.replace("http:", "ws:");
const transfer = "Transfer(address,address,uint256)";
const abi = [`event ${transfer.replace("uint256", "uint256 value").replace("(address,address", "(address indexed from, address indexed to")}`];
const byHeight = (logs) => logs.map((log) => `${log.blockNumber}/${log.logIndex ?? log.index}`);

// ethers: batches by itself; detects the network; retries nothing.
const provider = new JsonRpcProvider(url);
const head = await provider.getBlockNumber();
assert.equal(head, 584);
assert.equal((await provider.getNetwork()).chainId, 0x7122181e20277n);
const kinds = new Map();
let transactions = 0;
let logCount = 0;
let parent = null;
const numbers = Array.from({ length: head }, (_, n) => n + 1);
const blocks = await Promise.all(numbers.map((number) => provider.getBlock(number, true)));
for (const [place, block] of blocks.entries()) {
  assert.equal(block.number, place + 1);
  assert.ok(parent === null || block.parentHash === parent, `parent of block ${block.number}`);
  parent = block.hash;
  transactions += block.length;
  for (const tx of block.prefetchedTransactions) {
    assert.equal(tx.blockHash, block.hash);
    const standIn = tx.from === "0x0000000000000000000000000000000000000000";
    const kind = standIn ? "stand-in" : tx.type;
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
  }
}
assert.equal(transactions, 1104);
assert.deepEqual([...kinds].sort().map(([kind, count]) => `${kind}: ${count}`), [
  "0: 253", "1: 262", "2: 503", "4: 7", "stand-in: 79",
]);
const full = blocks.filter((block) => block.length > 0);
for (const block of full.slice(0, 40)) {
  for (const hash of block.transactions) {
    const [receipt, tx] = await Promise.all([provider.getTransactionReceipt(hash), provider.getTransaction(hash)]);
    assert.equal(receipt.blockHash, block.hash);
    assert.equal(receipt.index, tx.index);
    assert.equal(receipt.from, tx.from);
    logCount += receipt.logs.length;
  }
}
const last = full[39].number;
const some = await provider.getLogs({ fromBlock: 1, toBlock: last });
assert.equal(some.length, logCount);
assert.equal(new Set(byHeight(some)).size, some.length, "no two logs have the same place in their block");

const all = await provider.getLogs({ fromBlock: 1, toBlock: head });
const topic = new Interface(abi).getEvent("Transfer").topicHash;
const transfers = all.filter((log) => log.topics[0] === topic && log.topics.length === 3);
const found = await provider.getLogs({ fromBlock: 1, toBlock: "latest", topics: [topic, null, null] });
const threeOrMore = all.filter((log) => log.topics[0] === topic && log.topics.length >= 3);
assert.deepEqual(byHeight(found), byHeight(threeOrMore));
const token = transfers[0].address;
const ofToken = await new Contract(token, abi, provider).queryFilter("Transfer", 1, head);
assert.deepEqual(byHeight(ofToken), byHeight(transfers.filter((log) => log.address === token)));
await assert.rejects(provider.call({ to: token, data: "0x" }), ({ info }) => info.error.code === -32601);

// Without filters on the server ethers polls for logs: the error of eth_newFilter must be the one that it knows.
const refused = new Promise((done) => {
  let id;
  provider.on("debug", ({ action, payload, result }) => {
    id ??= action === "sendRpcPayload" ? [payload].flat().find(({ method }) => method === "eth_newFilter")?.id : undefined;
    const reply = action === "receiveRpcResult" && result.find((reply) => reply.id === id);
    if (reply) done(reply.error.message);
  });
});
await new Contract(token, abi, provider).on("Transfer", () => {});
assert.equal(await refused, "the method eth_newFilter does not exist/is not available");

const socket = new WebSocketProvider(wsUrl);
assert.equal(await socket.getBlockNumber(), head);
assert.equal((await socket.getBlock(full[0].number)).hash, full[0].hash);
await socket.destroy();

// viem: strict about the numbers of a chain.
const chain = defineChain({
  id: 0x7122181e20277,
  name: "evm-fees",
  nativeCurrency: { name: "GAS", symbol: "GAS", decimals: 18 },
  rpcUrls: { default: { http: [url] } },
});
for (const transport of [http(url, { batch: true }), webSocket(wsUrl)]) {
  const client = createPublicClient({ chain, transport });
  assert.equal(await client.getChainId(), chain.id);
  assert.equal(await client.getBlockNumber(), BigInt(head));
  for (const { number, hash } of full) {
    const block = await client.getBlock({ blockNumber: BigInt(number), includeTransactions: true });
    assert.equal(block.hash, hash);
    assert.ok(block.transactions.every((tx) => tx.blockHash === hash));
  }
  const event = parseAbiItem(abi[0]);
  const logs = await client.getLogs({ event, fromBlock: 1n, toBlock: BigInt(head), strict: true });
  // Strict: those with the data of the event.
  const strict = threeOrMore.filter(({ topics, data }) => topics.length === 3 && data.length >= 66);
  assert.deepEqual(byHeight(logs), byHeight(strict));
  const receipt = await client.waitForTransactionReceipt({ hash: full[0].transactions[0] });
  assert.equal(receipt.blockNumber, BigInt(full[0].number));
}
console.log(`ethers and viem: ${transactions} transactions, ${all.length} logs`);
// The listener and viem's socket stay open.
process.exit(0);
