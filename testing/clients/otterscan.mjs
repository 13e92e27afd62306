// Otterscan's methods over a recorded chain, called as its pages do: through ethers, with numbers of JSON.
// node otterscan.mjs EVM_URL, of `cairn demo --recording ../recordings/evm-fees --evm-listen ADDR`.
import assert from "node:assert/strict";
import { JsonRpcProvider } from "ethers";

const [url] = process.argv.slice(2);
const provider = new JsonRpcProvider(url, undefined, { staticNetwork: true });
const send = (method, ...params) => provider.send(method, params);
const PAGE = 25;

assert.equal(await send("ots_getApiLevel"), 8);
const head = await provider.getBlockNumber();
const header = await send("erigon_getHeaderByNumber", "latest");
assert.equal(Number(header.number), head);
assert.equal("transactions" in header, false);

// Blocks: pages from the end, as the list of a block asks for them.
const numbers = Array.from({ length: head }, (_, n) => n + 1);
const blocks = await Promise.all(numbers.map((number) => send("eth_getBlockByNumber", `0x${number.toString(16)}`, true)));
const ofAccount = new Map();
const sent = [];
for (const { number, hash, transactions } of blocks) {
  const height = Number(number);
  const details = await send("ots_getBlockDetails", height);
  assert.deepEqual(await send("ots_getBlockDetailsByHash", hash), details);
  assert.equal(details.block.transactionCount, transactions.length);
  const paged = [];
  for (let page = 0; paged.length < transactions.length; page++) {
    const { fullblock, receipts } = await send("ots_getBlockTransactions", height, page, 2);
    assert.equal(fullblock.transactions.length, receipts.length);
    paged.unshift(...fullblock.transactions);
  }
  assert.deepEqual(paged.map(({ hash }) => hash), transactions.map(({ hash }) => hash));
  for (const { hash, from, to, nonce } of transactions) {
    for (const account of new Set([from, to])) {
      if (account !== null) ofAccount.set(account, [hash, ...(ofAccount.get(account) ?? [])]);
    }
    if (!/^0x0+$/.test(from)) sent.push({ hash, from, nonce: Number(nonce) });
  }
}

// Accounts: all pages of both directions, as "next" and "previous" ask for them.
async function pages(account, method, edge, end) {
  const rows = [];
  for (let from = 0, done = false; !done; ) {
    const page = await send(method, account, from, PAGE);
    const hashes = page.txs.map(({ hash }) => hash);
    assert.deepEqual(page.receipts.map(({ transactionHash }) => transactionHash), hashes);
    assert.ok(page[end] || hashes.length >= PAGE);
    rows.push(hashes);
    done = page[end];
    if (!done) from = Number(page.txs.at(edge).blockNumber);
  }
  return rows;
}
let searched = 0;
for (const [account, hashes] of ofAccount) {
  const before = (await pages(account, "ots_searchTransactionsBefore", -1, "lastPage")).flat();
  const after = (await pages(account, "ots_searchTransactionsAfter", 0, "firstPage")).reverse().flat();
  assert.deepEqual(after, before, `both directions of ${account}`);
  assert.equal(new Set(before).size, before.length, `each transaction of ${account} once`);
  const found = new Set(before);
  assert.ok(hashes.every((hash) => found.has(hash)), `the transactions that ${account} sent or received`);
  searched += before.length;
}

// Transactions.
let operations = 0;
let calls = 0;
for (const { hash, from, nonce } of sent) {
  assert.equal(await send("ots_getTransactionBySenderAndNonce", from, nonce), hash);
  const trace = await send("ots_traceTransaction", hash);
  assert.ok(trace.every(({ depth }, place) => depth >= 0 && (place > 0 || depth === 0)));
  calls += trace.length;
  operations += (await send("ots_getInternalOperations", hash)).length;
  assert.match(await send("ots_getTransactionError", hash), /^0x/);
}
const receipts = (await Promise.all(numbers.map((number) => send("eth_getBlockReceipts", `0x${number.toString(16)}`)))).flat();
let contracts = 0;
for (const { contractAddress, transactionHash, from } of receipts.filter(({ contractAddress }) => contractAddress)) {
  const creator = await send("ots_getContractCreator", contractAddress);
  assert.deepEqual(creator, { hash: transactionHash, creator: from });
  assert.equal(await send("ots_hasCode", contractAddress, "latest"), true);
  contracts += 1;
}
assert.equal(await send("ots_getContractCreator", sent[0].from), null);
assert.equal(await send("ots_hasCode", sent[0].from, "latest"), false);
await assert.rejects(send("ots_searchTransactionsBefore", sent[0].from, 0, 26), ({ error }) => error.message === "max allowed page size: 25");
console.log(`otterscan: ${ofAccount.size} accounts, ${searched} rows, ${calls} calls, ${operations} operations, ${contracts} contracts`);
process.exit(0);
