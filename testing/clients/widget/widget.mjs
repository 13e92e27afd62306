// Initia's wallet widget, as its package is published, in Chromium over cairn: what an account has, the withdrawals of the
// bridge, activity and NFTs, each compared with cairn's replies; the state of a withdrawal with the recorded one.
// node widget.mjs CAIRN
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Chains, L1, L2, LISTED, PAIR } from "./chains.mjs";
import { Tab, until } from "./chromium.mjs";
import { serve } from "./server.mjs";

/** Receivers of recorded withdrawals: claimed ones and one without output; one that may be claimed and one whose output was deleted. */
const ACCOUNTS = {
  init1rw0np4yxjtvlqsa89jn5yl9a4nkr0zx0kps2sd: "0x1b9f30d48692d9f043a72ca7427cbdacec3788cf",
  init1sleg2k5c54fytsae3jdk9mrn27yw4qc4mgxkfg: "0x87f2855a98a55245c3b98c9b62ec735788ea8315",
};
const { withdrawals: RECORDED } = JSON.parse(readFileSync(join(PAIR, "transfers.json")));

const [cairn] = process.argv.slice(2);
const work = mkdtempSync(join(tmpdir(), "widget-"));
const chains = new Chains(cairn, work);
let server;
let tab;

async function get(url) {
  const reply = await fetch(url);
  assert.equal(reply.status, 200, url);
  return reply.json();
}

// What the widget writes: six digits after the point, cut; dollars with two.
const grouped = (digits) => digits.replace(/\B(?=(\d{3})+$)/g, ",");
function written(amount, decimals) {
  const digits = amount.padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  return decimals === 0 ? grouped(whole) : `${grouped(whole)}.${digits.slice(-decimals).padEnd(6, "0").slice(0, 6)}`;
}
const dollars = (value) => `$${(Math.floor(value * 100) / 100).toLocaleString("en-US", { minimumFractionDigits: 2 })}`;

// The widget's page.
const inWidget = (body) => tab.evaluate(`(() => { const root = document.querySelector("interwoven-kit").shadowRoot; ${body} })()`);
const lines = () =>
  inWidget(`return [...root.children].filter(({ localName }) => localName !== "style").flatMap(({ innerText }) => innerText?.split("\\n") ?? []).map((line) => line.trim()).filter(Boolean)`);
const state = async () => `${(await lines()).join("\n")}\n${tab.errors.join("\n")}`;
const click = (text, root = "root") =>
  until(
    async () => `a button \`${text}\`: ${await state()}`,
    () => inWidget(`const found = [...${root}.querySelectorAll("button")].find(({ innerText, disabled }) => innerText.trim() === ${JSON.stringify(text)} && !disabled); found?.click(); return found && true`),
  );

/** Waits until `read` gives what is expected, and fails with the difference if it does not. */
async function shows(about, expected, read) {
  let last;
  const same = async () => {
    last = await read();
    try {
      assert.deepEqual(last, expected);
      return true;
    } catch {
      return undefined;
    }
  };
  await until(about, same).catch(async () => assert.deepEqual(last, expected, `${about}\n${await state()}`));
}

/** Rows of the list of assets: symbol, chain, amount, value. */
const assets = () =>
  inWidget(`
    root.querySelectorAll('button[class^="_assetItem_"][data-state="closed"]').forEach((group) => group.click());
    const text = (within, name) => within.querySelector('[class^="_' + name + '_"]')?.innerText.trim();
    return [...root.querySelectorAll('[class^="_assetItem_"]')].flatMap((group) => {
      const symbol = text(group, "symbol");
      const rows = [...group.parentElement.querySelectorAll('[class^="_chainsList_"] button')];
      const of_rows = rows.map((row) => [symbol, text(row, "name"), text(row, "amount"), text(row, "usd") ?? ""].join(" "));
      return rows.length > 0 ? of_rows : [[symbol, text(group, "chainName"), text(group, "amount"), text(group, "valueColumn").split("\\n")[1]?.trim() ?? ""].join(" ")];
    }).sort()`);

async function balances(account) {
  const expected = [];
  for (const { chain_id, chain_name, pretty_name } of LISTED) {
    const owned = await get(`${chains.route}/v1/chain/${chain_name}/${account}/balances`);
    for (const { denom, symbol = denom, amount, decimals = 0, value } of owned) {
      expected.push([symbol, pretty_name, written(amount, decimals), value ? dollars(value) : ""].join(" "));
    }
    if (chain_id === L2.chain_id) {
      const ledger = await get(`${chains.index}/indexer/ledger/v1/balances/by_account/${account}`);
      const amounts = (list) => list.map(({ denom, amount }) => `${denom} ${amount}`).sort();
      assert.deepEqual(amounts(owned), amounts(ledger.balances));
    }
  }
  assert.ok(expected.length > 1, account);
  await shows(`balances of ${account}`, expected.sort(), assets);
  return expected.length;
}

/** The list of withdrawals: amount, symbol and state of each. */
async function listed() {
  const all = await lines();
  const rows = [];
  for (const line of all.slice(all.indexOf("OP Bridge withdrawals") + 1)) {
    if (/^[\d,]+\.\d{6}$/.test(line)) rows.push([line]);
    else rows.at(-1)?.push(line);
  }
  return rows.map((row) => row.slice(0, 3).join(" "));
}

/** The rows of an account's withdrawals, once cairn has the outputs of the layer one that cover them. */
async function withdrawals(account) {
  const recorded = RECORDED.filter(({ event }) => event.to === account).sort((a, b) => b.l2_sequence - a.l2_sequence);
  const executor = `${chains.index}/indexer/bridge/v1/withdrawals/${account}?limit=20&offset=0&order=desc`;
  const covered = recorded.map(({ l2_sequence, output_index, deleted }) => [l2_sequence, deleted ? 0 : (output_index ?? 0)]);
  const reply = async () => (await get(executor)).withdrawals;
  await shows(executor, covered, async () => (await reply()).map(({ sequence, output_index }) => [sequence, output_index]));
  return (await reply()).map(({ amount }, place) => {
    const { claimed, output, deleted } = recorded[place];
    assert.equal(amount.denom, "uinit");
    return `${written(amount.amount, 6)} INIT ${claimed ? "Claimed" : output && !deleted ? "Claim" : "In progress"}`;
  });
}

async function visit(account, address) {
  await tab.navigate(`${server.origin}/?address=${address}`);
  await shows(`the address ${account}`, account, () => tab.evaluate(`document.querySelector("output")?.innerText`));
  await click("Wallet", "document");
  const owned = await balances(account);

  const { txs } = await get(`${chains.index}/indexer/tx/v1/txs/by_account/${account}?pagination.limit=10`);
  await click("Activity");
  await shows(`activity of ${account}`, txs.length, async () => (await lines()).filter((line) => line === L2.pretty_name).length);
  const { tokens } = await get(`${chains.index}/indexer/nft/v1/tokens/by_account/${account}`);
  const ids = tokens.map(({ nft }) => nft.token_id).sort();
  await click("NFTs");
  await shows(`NFTs of ${account}`, ids, async () => (await lines()).filter((line) => ids.includes(line)).sort());

  const expected = await withdrawals(account);
  await click("Bridge", "document");
  await click("Withdrawal status");
  await shows(`withdrawals of ${account}`, expected, listed);
  return { owned, activity: txs.length, nfts: ids.length, withdrawals: expected.length };
}

try {
  await chains.start();
  server = await serve(chains);
  tab = await Tab.open();
  const seen = [];
  for (const [account, address] of Object.entries(ACCOUNTS)) seen.push(await visit(account, address));
  assert.deepEqual(tab.errors, []);

  const others = new Set();
  for (const [url, status] of tab.requests) {
    const { hostname, origin } = new URL(url);
    if (hostname !== "127.0.0.1") {
      assert.equal(status, undefined, `${url} was reached`);
      others.add(hostname);
    } else if ([chains.index, chains.route, chains.evm].includes(origin)) {
      assert.ok(status === undefined || status < 400, `${status} ${url}`);
    }
  }
  const count = (of) => seen.reduce((sum, it) => sum + of(it), 0);
  console.log(
    `wallet widget: ${count((it) => it.owned)} balances, ${count((it) => it.withdrawals)} withdrawals, ` +
      `${count((it) => it.activity)} transactions, ${count((it) => it.nfts)} NFTs; not reached: ${[...others].sort().join(", ")}`,
  );
} finally {
  await tab?.close();
  server?.close();
  await chains.stop();
  rmSync(work, { recursive: true, force: true });
}
