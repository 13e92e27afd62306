// Filters of published Ethereum libraries over a chain that grows: ethers, whose contracts poll one, and viem.
// node filters.mjs EVM_URL, of a node that shows new blocks of ../recordings/evm-fees from 300 on, with evm_filters.
import assert from "node:assert/strict";
import { Contract, id, JsonRpcProvider } from "ethers";
import { createPublicClient, http, parseAbiItem } from "viem";

const [url] = process.argv.slice(2);
const wanted = 25;
const token = "0x042add9e80f7a23ab71d5e1d392af1d3928b7d05";
const provider = new JsonRpcProvider(url, undefined, { pollingInterval: 100 });
const methods = new Set();
provider.on("debug", ({ action, payload }) => {
  if (action === "sendRpcPayload") for (const { method } of [payload].flat()) methods.add(method);
});

const contract = new Contract(token, ["event Transfer(address indexed from, address indexed to, uint256 value)"], provider);
const seen = await new Promise((done) => {
  const logs = [];
  contract.on("Transfer", (_from, _to, _value, event) => {
    logs.push(event.log);
    if (logs.length === wanted) done(logs);
  });
});
assert.ok(methods.has("eth_newFilter") && methods.has("eth_getFilterChanges"), [...methods].join());
assert.ok(!methods.has("eth_getLogs"), "ethers did not fall back");
for (const log of seen) {
  const all = await provider.getLogs({ fromBlock: log.blockNumber, toBlock: log.blockNumber, address: token, topics: [id("Transfer(address,address,uint256)")] });
  assert.ok(all.some((other) => other.index === log.index && other.data === log.data), `${log.blockNumber}`);
}

const client = createPublicClient({ transport: http(url) });
const event = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");
const filters = {
  logs: await client.createEventFilter({ event }),
  blocks: await client.createBlockFilter(),
  txs: await client.createPendingTransactionFilter(),
};
const found = { logs: [], blocks: [], txs: [] };
while (Object.values(found).some((list) => list.length < wanted)) {
  for (const [name, filter] of Object.entries(filters)) found[name].push(...(await client.getFilterChanges({ filter })));
  await new Promise((next) => setTimeout(next, 50));
}
const blocks = await Promise.all(found.blocks.map((blockHash) => client.getBlock({ blockHash })));
assert.ok(blocks.every(({ number }, place) => place === 0 || number === blocks[place - 1].number + 1n), "each block once, in order");
assert.equal(new Set(found.txs).size, found.txs.length);
for (const hash of found.txs.slice(0, 5)) assert.equal((await client.getTransaction({ hash })).hash, hash);
assert.ok(found.logs.every(({ eventName }) => eventName === "Transfer"));
for (const filter of Object.values(filters)) assert.equal(await client.uninstallFilter({ filter }), true);
await assert.rejects(client.getFilterChanges({ filter: filters.blocks }), /filter not found/);
console.log(`filters: ${seen.length} logs of ethers, ${found.logs.length} logs, ${found.blocks.length} blocks, ${found.txs.length} transactions of viem`);
process.exit(0);
