// Two recorded chains with a bridge between them, replayed; and cairn beside the rollup's node, with routes between both.
import { spawn } from "node:child_process";
import { createWriteStream, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { until } from "./chromium.mjs";

export const PAIR = join(import.meta.dirname, "../../recordings/l1-l2");
export const LISTED = JSON.parse(readFileSync(join(PAIR, "registry.json")));
export const [L1, L2] = LISTED;

const coin = (base, symbol, exponent, counterparty, type) => ({
  base,
  symbol,
  display: "whole",
  denom_units: [{ denom: base, exponent: 0 }, { denom: "whole", exponent }],
  ...(counterparty && { traces: [{ type, counterparty: { chain_name: counterparty[0], base_denom: counterparty[1] } }] }),
});

/** Tokens of the chains, as the recordings' example registry has them. */
export const ASSETS = {
  [L1.chain_name]: [
    coin("uinit", "INIT", 6),
    coin("ibc/6AF73C264FA05A9A10643C9242D102F52451C61E3D4119B1E531BB203077A000", "GAS", 18, [L2.chain_name, "GAS"], "ibc"),
  ],
  [L2.chain_name]: [
    coin("GAS", "GAS", 18),
    coin("ibc/37A3FB4FED4CA04ED6D9E5DA36C6D27248645F0E22F585576A1488B8A89C5A50", "INIT.ibc", 6, [L1.chain_name, "uinit"], "ibc"),
    coin("l2/771d639f30fbe45e3fbca954ffbe2fcc26f915f5513c67a4a2d0bc1d635bdefd", "INIT.op", 6, [L1.chain_name, "uinit"], "op"),
  ],
};

/** The processes, and what they print. */
export class Chains {
  #children = [];
  #work;
  #cairn;

  constructor(cairn, work) {
    this.#cairn = cairn;
    this.#work = work;
  }

  /** Starts a process whose output and log go to files; the text of both. */
  #start(name, ...args) {
    const file = join(this.#work, name);
    const child = spawn(this.#cairn, args, { cwd: this.#work, stdio: ["ignore", "pipe", "pipe"] });
    const log = createWriteStream(file);
    let text = "";
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding("utf8").on("data", (part) => {
        text += part;
        log.write(part);
      });
    }
    this.#children.push(child);
    return (about, pattern) =>
      until(() => `${name}: ${about}\n${text}`, () => {
        if (child.exitCode !== null) throw new Error(`${name} ended with ${child.exitCode}:\n${text}`);
        return text.match(pattern)?.[1];
      });
  }

  async #replay(name) {
    const said = this.#start(name, "replay", join(PAIR, name), ...["comet", "rest", "json-rpc", "executor"].flatMap((it) => [`--${it}`, "127.0.0.1:0"]));
    const url = (kind) => said(kind, new RegExp(`^${kind} +(\\S+)$`, "m"));
    await said("seed", /^(seed)/m);
    return { rpc: await url("comet"), rest: await url("rest"), url };
  }

  /** URLs of the nodes and of cairn. */
  async start() {
    const [l1, l2] = [await this.#replay("l1"), await this.#replay("l2")];
    l2["json-rpc"] = await l2.url("json-rpc");
    this.nodes = { [L1.chain_id]: l1, [L2.chain_id]: l2 };
    const registry = join(this.#work, "registry");
    for (const [name, assets] of Object.entries(ASSETS)) {
      const folder = join(registry, "site/chains", name);
      mkdirSync(folder, { recursive: true });
      writeFileSync(join(folder, "assetlist.json"), JSON.stringify({ chain_name: name, assets }));
    }
    writeFileSync(join(registry, "site/chains.json"), JSON.stringify(listed((chain) => this.nodes[chain.chain_id])));
    writeFileSync(join(registry, "own.toml"), `[import]\ninitia = "site"\n[[asset]]\nchain = "${L1.chain_id}"\ndenom = "uinit"\nprice_usd = "0.15"\n`);
    const said = this.#start(
      "cairn", "run", "--chain-id", L2.chain_id, "--vm", "evm", "--data", "index", "--listen", "127.0.0.1:0",
      "--index", "bridge,ledger,packets,tokens,blocks,logs", "--evm-listen", "127.0.0.1:0", "--reconcile", "0s",
      "--comet", l2.rpc, "--rest", l2.rest, "--json-rpc", l2["json-rpc"], "--bridge-l1", l1.rest, "--bridge-poll", "1s",
      "--route-registry", registry, "--route-data", "route", "--route-listen", "127.0.0.1:0",
    );
    this.route = await said("the routing listener", /routing.*(http:[0-9./:]+)/);
    this.evm = await said("Ethereum's JSON-RPC", /serving Ethereum's JSON-RPC.*(http:[0-9./:]+)/);
    this.index = await said("the listener", /serving url="?(http:[0-9./:]+)/);
    await said("all blocks", /(caught up)/);
  }

  async stop() {
    const ended = this.#children.map((child) => child.exitCode ?? new Promise((resolve) => child.once("exit", resolve)));
    this.#children.forEach((child) => child.kill());
    await Promise.all(ended);
  }
}

/** The recordings' registry with addresses of each chain, by the kind of address, and more metadata. */
export function listed(addresses, metadata = () => ({})) {
  return LISTED.map((chain) => {
    const known = addresses(chain);
    const kinds = ["rpc", "rest", "json-rpc", "indexer"].filter((kind) => known[kind]);
    const apis = Object.fromEntries(kinds.map((kind) => [kind, [{ address: known[kind] }]]));
    return { ...chain, apis, metadata: { ...chain.metadata, ...metadata(chain) } };
  });
}
