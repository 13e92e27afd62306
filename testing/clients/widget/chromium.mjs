// Chromium without a window, which reaches 127.0.0.1 and no other host, driven over its DevTools protocol.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import WebSocket from "ws";

const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
const FLAGS = [
  "--headless=new",
  // Chooses a free port and writes it to `DevToolsActivePort` in the profile.
  "--remote-debugging-port=0",
  // Its sandbox refuses to run as root, and in containers. The pages are ours.
  "--no-sandbox",
  // A container's /dev/shm is too small.
  "--disable-dev-shm-usage",
  "--disable-gpu",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-extensions",
  "--no-first-run",
  "--no-default-browser-check",
];
const TIMEOUT = 60_000;

/** The first value of `read` that is not undefined; an error with what `about` says after a minute. */
export async function until(about, read) {
  const end = Date.now() + TIMEOUT;
  for (;;) {
    const found = await read();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error(`not within ${TIMEOUT / 1000} s: ${typeof about === "function" ? await about() : about}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function program() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const places = NAMES.flatMap((name) => process.env.PATH.split(":").map((folder) => join(folder, name)));
  const found = places.find(existsSync);
  if (!found) throw new Error(`none of ${NAMES} is in PATH: install Chromium, or name its program in the environment variable CHROMIUM`);
  return found;
}

/** A tab of a new browser. */
export class Tab {
  /** URLs that were requested, with the status of each response. */
  requests = new Map();
  /** Uncaught errors of the page. */
  errors = [];
  #socket;
  #calls = new Map();
  #sent = 0;
  #process;
  #profile;

  static async open() {
    const tab = new Tab();
    tab.#profile = mkdtempSync(join(tmpdir(), "chromium-"));
    tab.#process = spawn(program(), [...FLAGS, `--user-data-dir=${tab.#profile}`, "about:blank"], { stdio: "ignore" });
    const port = await until("Chromium's DevTools port", () => {
      if (tab.#process.exitCode !== null) throw new Error(`Chromium ended with ${tab.#process.exitCode}`);
      const file = join(tab.#profile, "DevToolsActivePort");
      // The path is written after the port: both lines are there, or the file is not complete.
      const [port, path] = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
      return path ? port : undefined;
    });
    const targets = await (await fetch(`http://127.0.0.1:${port}/json`)).json();
    const { webSocketDebuggerUrl } = targets.find(({ type }) => type === "page");
    tab.#socket = new WebSocket(webSocketDebuggerUrl, { perMessageDeflate: false });
    await new Promise((resolve, reject) => tab.#socket.once("open", resolve).once("error", reject));
    tab.#socket.on("message", (data) => tab.#received(JSON.parse(data)));
    for (const domain of ["Network", "Page", "Runtime"]) await tab.#call(`${domain}.enable`);
    return tab;
  }

  #received({ id, result, error, method, params }) {
    if (id !== undefined) {
      const { resolve, reject } = this.#calls.get(id);
      this.#calls.delete(id);
      if (error) reject(new Error(error.message));
      else resolve(result);
    } else if (method === "Network.requestWillBeSent") {
      const { url } = params.request;
      if (url.startsWith("http") && !this.requests.has(url)) this.requests.set(url, undefined);
    } else if (method === "Network.responseReceived") {
      this.requests.set(params.response.url, params.response.status);
    } else if (method === "Runtime.exceptionThrown") {
      this.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
    }
  }

  #call(method, params = {}) {
    const id = ++this.#sent;
    this.#socket.send(JSON.stringify({ id, method, params }));
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject }));
  }

  navigate(url) {
    return this.#call("Page.navigate", { url });
  }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.#call("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }

  async close() {
    const ended = new Promise((resolve) => this.#process.once("exit", resolve));
    await this.#call("Browser.close").catch(() => {});
    await ended;
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10 });
  }
}
