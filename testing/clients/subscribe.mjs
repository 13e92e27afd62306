// Subscriptions of published Ethereum libraries over a chain that grows: ethers and viem over WebSocket.
// node subscribe.mjs EVM_URL, of a node that shows new blocks of ../recordings/evm-fees from 300 on.
import assert from "node:assert/strict";
import { id, JsonRpcProvider, WebSocketProvider } from "ethers";
import { createPublicClient, parseAbiItem, webSocket } from "viem";
import WebSocket from "ws";

globalThis.WebSocket ??= WebSocket;

const [url] = process.argv.slice(2);
const wsUrl = url.replace("http:", "ws:");
const transfer = "Transfer(address,address,uint256)";
const blocks = 25;

/** Resolves with the values that `listen` passes on, once there are `count`. */
const collect = (count, listen) =>
  new Promise((done) => {
    const values = [];
    listen((...more) => {
      values.push(...more);
      if (values.length >= count) done(values);
    });
  });

const socket = new WebSocketProvider(wsUrl);
const client = createPublicClient({ transport: webSocket(wsUrl) });
const event = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");
const [numbers, logs, heads, events] = await Promise.all([
  collect(blocks, (add) => socket.on("block", (number) => add(number))),
  collect(blocks, (add) => socket.on({ topics: [id(transfer)] }, (log) => add(log))),
  collect(blocks, (add) => client.watchBlocks({ onBlock: (block) => add(block) })),
  collect(blocks, (add) => client.watchEvent({ event, onLogs: (logs) => add(...logs) })),
]);

// Each block once, in order; each the same as what is read afterwards.
const http = new JsonRpcProvider(url);
const isNext = (numbers) => numbers.every((number, place) => place === 0 || Number(number) === Number(numbers[place - 1]) + 1);
assert.ok(isNext(numbers), `ethers: ${numbers}`);
assert.ok(isNext(heads.map(({ number }) => number)), "viem");
for (const head of heads) {
  const block = await http.getBlock(Number(head.number));
  assert.deepEqual([head.hash, head.parentHash], [block.hash, block.parentHash]);
}
for (const log of [...logs, ...events]) {
  const height = Number(log.blockNumber);
  const all = await http.getLogs({ fromBlock: height, toBlock: height, topics: [id(transfer)] });
  assert.ok(all.some((other) => other.index === (log.index ?? log.logIndex) && other.data === log.data), `${height}`);
}
console.log(`subscriptions: ${heads.length} heads, ${logs.length + events.length} logs`);
process.exit(0);
