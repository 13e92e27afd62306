// Ponder indexes a recorded chain from cairn alone; its rows are compared with the logs.
// node ponder.mjs EVM_URL, of `cairn demo --recording ../../recordings/evm-fees --evm-listen ADDR`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, cpSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createPublicClient, http, parseAbiItem } from "viem";

const [url] = process.argv.slice(2);
const here = fileURLToPath(new URL(".", import.meta.url));
const client = createPublicClient({ transport: http(url) });
const event = parseAbiItem("event Transfer(address indexed from, address indexed to, uint256 value)");
const head = await client.getBlockNumber();
const all = await client.getLogs({ event, fromBlock: 1n, toBlock: head, strict: true });

// The token with the most transfers that is not the fee token, and the fee token, which has one in nearly every transaction.
const counts = new Map();
for (const { address } of all) counts.set(address, (counts.get(address) ?? 0) + 1);
const [feeToken, token] = [...counts].sort((one, other) => other[1] - one[1]).map(([address]) => address);

const freePort = () =>
  new Promise((done) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

async function index(address) {
  const expected = all.filter((log) => log.address === address);
  // It writes its database beside the project.
  const dir = mkdtempSync(join(tmpdir(), "ponder-"));
  cpSync(join(here, "ponder"), dir, { recursive: true });
  symlinkSync(join(here, "node_modules"), join(dir, "node_modules"));
  const port = await freePort();
  const chainId = await client.getChainId();
  const env = { ...process.env, RPC_URL: url, CHAIN_ID: String(chainId), TOKEN: address, PONDER_TELEMETRY_DISABLED: "true" };
  const args = ["start", "--root", dir, "--schema", "cairn", "--hostname", "127.0.0.1", "--port", String(port), "--log-level", "warn"];
  const ponder = spawn(join(here, "node_modules/.bin/ponder"), args, { cwd: dir, env });
  let log = "";
  for (const stream of [ponder.stdout, ponder.stderr]) stream.on("data", (text) => (log += text));
  const ended = new Promise((done) => ponder.on("exit", (code) => done(code)));
  try {
    const rows = "{ transfers(limit: 1000, after: AFTER) { totalCount pageInfo { hasNextPage endCursor } items { id from to value gasUsed } } blocks { totalCount } }";
    const ask = async (after) => {
      const body = JSON.stringify({ query: rows.replace("AFTER", JSON.stringify(after)) });
      const reply = await fetch(`http://127.0.0.1:${port}/graphql`, { method: "POST", headers: { "content-type": "application/json" }, body });
      const { data, errors } = await reply.json();
      assert.ok(data, JSON.stringify(errors));
      return data;
    };
    const deadline = Date.now() + 120_000;
    let found;
    // Blocks that are not final for Ponder arrive after it is ready.
    for (;;) {
      assert.ok(Date.now() < deadline, `${found?.transfers.totalCount} of ${expected.length} transfers after two minutes\n${log}`);
      assert.equal(ponder.exitCode, null, log);
      found = await ask(null).catch(() => undefined);
      if (found?.transfers.totalCount >= expected.length && found.blocks.totalCount >= 5) break;
      await new Promise((done) => setTimeout(done, 200));
    }
    const items = [...found.transfers.items];
    for (let page = found.transfers.pageInfo; page.hasNextPage; ) {
      const { transfers } = await ask(page.endCursor);
      items.push(...transfers.items);
      page = transfers.pageInfo;
    }
    const key = ({ id, from, to, value }) => `${id} ${from} ${to} ${value}`.toLowerCase();
    const logs = expected.map(({ blockNumber, logIndex, args }) => key({ id: `${blockNumber}/${logIndex}`, ...args }));
    assert.deepEqual(items.map(key).sort(), logs.sort());
    assert.ok(items.every(({ gasUsed }) => BigInt(gasUsed) > 0n));
    return items.length;
  } finally {
    ponder.kill("SIGTERM");
    await ended;
    rmSync(dir, { recursive: true });
  }
}

console.log(`ponder: ${await index(token)} transfers of a token, ${await index(feeToken)} of the fee token`);
