// Runs the two chains and the transfers between them, and writes the recording.
import { execFileSync } from "node:child_process";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { decodeEventLog, encodeFunctionData, numberToHex } from "viem";
import { ARTIFACTS } from "./artifacts.mjs";
import { Chain, account } from "./chain.mjs";
import { connect, deployLayerZero, execute, packetOf, verify } from "./layerzero.mjs";
import {
  DUSTY, ONE, ONE_AND_A_HALF, TOPICS, USER, askAfterSends, askBeforeSends, sendParam, withoutDust,
} from "./questions.mjs";

const OUT = new URL("../", import.meta.url);
// The hash that a client kit's wallet claims for whatever it was given.
const CLAIMED_HASH = `0x${"bb".repeat(32)}`;
const ENOUGH_GAS = 500_000n;
const TOO_LITTLE_GAS = 1_000n;

const A = new Chain("A", 31337, 40101, 18545);
const B = new Chain("B", 31338, 40102, 18546);
A.gasPrice = 20_000_000_000n;
B.gasPrice = 2_000_000_000n;

async function deployTokens() {
  const supply = (tokens) => BigInt(tokens) * ONE;
  const token = (chain, name, symbol, tokens) =>
    chain.deploy("OmnichainToken", [name, symbol, chain.lz.endpoint, chain.deployer.address, USER, supply(tokens)]);
  const owner = A.deployer.address;

  const tok = { a: await token(A, "Test Token", "TOK", 1_000_000), b: await token(B, "Test Token", "TOK", 100) };
  const plain = await A.deploy("PlainToken", ["Adapted Token", "ADP", USER, supply(1_000_000)]);
  const adp = {
    a: await A.deploy("TokenLockbox", [plain, A.lz.endpoint, owner]),
    b: await token(B, "Adapted Token", "ADP", 0),
  };
  const eth = {
    a: await A.deploy("CoinLockbox", [A.lz.endpoint, owner]),
    b: await token(B, "Ether of Test EVM A", "ETHA", 0),
  };
  for (const { a, b } of [tok, adp, eth]) {
    await connect(A, a, B.eid, b);
    await connect(B, b, A.eid, a);
  }
  A.ofts = { TOK: { oft: tok.a, token: tok.a }, ADP: { oft: adp.a, token: plain }, ETH: { oft: eth.a } };
  B.ofts = Object.fromEntries(
    Object.entries({ TOK: tok.b, ADP: adp.b, ETH: eth.b }).map(([name, oft]) => [name, { oft, token: oft }]),
  );
}

// Sends a token as a wallet would that follows a quote: the fee with 10 % on top, in the call and in the value.
async function send(from, to, token, amount, { short = 0n, status } = {}) {
  const { oft } = from.ofts[token];
  const param = sendParam(to.eid, amount);
  const quoted = await from.view("OmnichainToken", oft, "quoteSend", [param, false]);
  const nativeFee = (quoted.nativeFee * 11n) / 10n;
  const coins = from.ofts[token].token === undefined ? withoutDust(amount) : 0n;
  const options = { from: account("user"), value: nativeFee + coins - short, gas: 1_000_000n, status };
  return from.call("OmnichainToken", oft, "send", [param, { nativeFee, lzTokenFee: 0n }, USER], options);
}

// Asks what becomes of sends that a wallet could make by mistake, and of one that is right; nothing is sent.
async function trySends() {
  const attempt = async (token, amount, { fee, value }) => {
    const { oft } = A.ofts[token];
    const param = sendParam(B.eid, amount);
    const { nativeFee } = await A.view("OmnichainToken", oft, "quoteSend", [param, false]);
    const args = [param, { nativeFee: fee(nativeFee), lzTokenFee: 0n }, USER];
    const data = encodeFunctionData({ abi: ARTIFACTS.OmnichainToken.abi, functionName: "send", args });
    await A.record("eth_call", [{ from: USER, to: oft, data, value: numberToHex(value(nativeFee)) }, "latest"]);
  };
  const same = (fee) => fee;
  await attempt("TOK", ONE, { fee: same, value: same });
  // More value than the call names, a fee that is 1 wei too low, no allowance, a coin's dust in the value.
  await attempt("TOK", ONE, { fee: same, value: (fee) => fee + 1n });
  await attempt("TOK", ONE, { fee: (fee) => fee - 1n, value: (fee) => fee - 1n });
  await attempt("ADP", ONE, { fee: same, value: same });
  await attempt("ETH", DUSTY, { fee: same, value: (fee) => fee + DUSTY });
  await attempt("ETH", DUSTY, { fee: same, value: (fee) => fee + withoutDust(DUSTY) });
}

function event(receipt, topic, name) {
  const log = receipt?.logs.find((l) => l.topics[0] === topic);
  return log && decodeEventLog({ abi: ARTIFACTS.OmnichainToken.abi, eventName: name, ...log }).args;
}

// A row of `transfers.json`; `steps` are the transactions on the far chain.
function row(from, to, token, sent, state, { attested, committed, executed } = {}) {
  const left = event(sent, TOPICS.oftSent, "OFTSent");
  const arrived = event(executed, TOPICS.oftReceived, "OFTReceived");
  const hash = (receipt) => receipt?.transactionHash ?? null;
  return {
    token: token ?? null,
    from_chain: String(from.id),
    to_chain: token ? String(to.id) : null,
    oft_from: token ? from.ofts[token].oft : null,
    oft_to: token ? to.ofts[token].oft : null,
    src_eid: token ? from.eid : null,
    dst_eid: token ? to.eid : null,
    guid: left?.guid ?? null,
    send_hash: hash(sent),
    send_block: Number(sent.blockNumber),
    attest_hash: hash(attested),
    verify_hash: hash(committed),
    receive_hash: arrived ? hash(executed) : null,
    receive_block: arrived ? Number(executed.blockNumber) : null,
    alert_hash: executed && !arrived ? hash(executed) : null,
    amount_sent: left?.amountSentLD.toString() ?? null,
    amount_received: arrived?.amountReceivedLD.toString() ?? null,
    state,
  };
}

async function transfer(from, to, token, amount, gasLimit = ENOUGH_GAS) {
  const sent = await send(from, to, token, amount);
  const packet = packetOf(sent);
  const verified = await verify(to, to.lz, packet);
  const executed = await execute(to, to.lz, packet, gasLimit);
  return row(from, to, token, sent, gasLimit === ENOUGH_GAS ? "received" : "alerted", { ...verified, executed });
}

async function run() {
  const user = account("user");
  const rows = [];
  rows.push(await transfer(A, B, "TOK", ONE));
  const { oft, token } = A.ofts.ADP;
  await A.call("PlainToken", token, "approve", [oft, ONE_AND_A_HALF], { from: user });
  rows.push(await transfer(A, B, "ADP", ONE_AND_A_HALF));
  rows.push(await transfer(A, B, "ETH", DUSTY));
  rows.push(await transfer(B, A, "TOK", ONE_AND_A_HALF));
  rows.push(row(A, B, "TOK", await send(A, B, "TOK", ONE_AND_A_HALF), "in flight"));
  rows.push(await transfer(A, B, "TOK", DUSTY, TOO_LITTLE_GAS));
  rows.push(row(A, B, "TOK", await send(A, B, "TOK", ONE, { short: 1n, status: "0x0" }), "failed"));
  const gift = await A.send(user, { to: `0x${"66".repeat(20)}`, value: ONE, gas: 21_000n });
  rows.push(row(A, B, undefined, gift, "no transfer"));
  return rows;
}

// The one line that no node said: a receipt under the hash that a client kit claims.
function claim(receipt) {
  const text = JSON.stringify(receipt).replaceAll(receipt.transactionHash, CLAIMED_HASH);
  A.lines.push({ kind: "eth", method: "eth_getTransactionReceipt", params: [CLAIMED_HASH], result: JSON.parse(text) });
}

function write(chain) {
  const folder = new URL(`${chain.name.toLowerCase()}/`, OUT);
  mkdirSync(folder, { recursive: true });
  const isReceipt = ({ method, result }) => method === "eth_getTransactionReceipt" && result !== null;
  const summary = {
    format: 1,
    name: `evm-oft-${chain.name.toLowerCase()}`,
    chain_id: String(chain.id),
    vm: "ethereum",
    first_height: 0,
    last_height: 0,
    txs: 0,
    evm_txs: chain.lines.filter(isReceipt).length,
    trace_frames: 0,
    fee_denom: "",
    state_queries: chain.lines.length,
  };
  writeFileSync(new URL("recording.json", folder), `${JSON.stringify(summary, null, 1)}\n`);
  const lines = new URL("state.ndjson", folder);
  writeFileSync(lines, chain.lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  execFileSync("zstd", ["-q", "-19", "-f", lines.pathname, "-o", `${lines.pathname}.zst`]);
  rmSync(lines);
}

async function main() {
  await Promise.all([A.start(), B.start()]);
  A.lz = await deployLayerZero(A, B);
  B.lz = await deployLayerZero(B, A);
  await deployTokens();
  A.hashes = [];
  B.hashes = [];
  await askBeforeSends(A, B.eid, Object.values(A.ofts));
  await askBeforeSends(B, A.eid, Object.values(B.ofts));

  await trySends();

  const rows = await run();
  const incoming = (to) =>
    rows.filter((r) => r.guid && r.to_chain === String(to.id)).map((r) => ({ oft: r.oft_to, guid: r.guid }));
  await askAfterSends(A, A.lz.endpoint, Object.values(A.ofts), incoming(A));
  await askAfterSends(B, B.lz.endpoint, Object.values(B.ofts), incoming(B));
  await B.record("eth_getTransactionReceipt", [CLAIMED_HASH]);
  const { result } = await A.record("eth_getTransactionReceipt", [rows[0].send_hash]);
  claim(result);

  [A, B].forEach(write);
  writeFileSync(new URL("transfers.json", OUT), `${JSON.stringify(rows, null, 1)}\n`);
  const contracts = [A, B].map(({ id, eid, lz, ofts }) => ({ chain_id: String(id), eid, user: USER, layerzero: lz, ofts }));
  writeFileSync(new URL("contracts.json", OUT), `${JSON.stringify(contracts, null, 1)}\n`);
}

try {
  await main();
} finally {
  A.stop();
  B.stop();
}
