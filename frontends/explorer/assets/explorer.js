// Refreshes what a page shows: relative times every second, and the parts marked with `data-live` when the chain moves.
// A part is fetched again as HTML from the page's own address, so the server alone renders.
"use strict";

// The reader's choice of light or dark, which `theme.js` has set; without one, the system's.
const root = document.documentElement;
const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
for (const button of document.querySelectorAll("button.theme")) {
  button.hidden = false;
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    try {
      localStorage.setItem("theme", root.dataset.theme);
    } catch {
      // A browser may forbid storage: then the choice lasts for the page.
    }
  });
}

const SECOND = 1000;
const steps = [["s", 60], ["min", 60], ["h", 24], ["d", Infinity]];

// As `format::ago` on the server.
function ago(then) {
  let left = Math.floor(Math.max(0, Date.now() - then) / SECOND);
  for (const [unit, size] of steps) {
    if (left < size) return `${left} ${unit} ago`;
    left = Math.floor(left / size);
  }
  return "";
}

function refreshTimes() {
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const text = ago(Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }
}

let wanted = false;
let busy = false;

// At most one request at a time and one a second, and none while the page is hidden.
async function refresh() {
  wanted = true;
  if (busy || document.hidden) return;
  busy = true;
  while (wanted && !document.hidden) {
    wanted = false;
    try {
      const response = await fetch(location.href, { cache: "no-cache" });
      if (response.ok) show(await response.text());
    } catch {
      // The server is away; the next event or poll comes after it is back.
    }
    await new Promise((done) => setTimeout(done, SECOND));
  }
  busy = false;
}

function show(text) {
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const part of document.querySelectorAll("[data-live]")) {
    const next = fresh.getElementById(part.id);
    // What the reader has opened stays open.
    const opened = [...part.querySelectorAll("details")].map((details) => details.open);
    next?.querySelectorAll("details").forEach((details, place) => (details.open = opened[place] ?? details.open));
    if (next && next.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) part.replaceWith(next);
  }
  refreshTimes();
}

function follow(part) {
  const { poll, stream: address } = part.dataset;
  if (poll) {
    // The part of a final state has no interval any more.
    const timer = setInterval(() => {
      if (document.querySelector("[data-poll]")) refresh();
      else clearInterval(timer);
    }, Number(poll) * SECOND);
  }
  if (!address) return;
  const stream = new EventSource(address);
  for (const kind of ["block", "tx", "reorg"]) stream.addEventListener(kind, refresh);
}

document.addEventListener("visibilitychange", () => wanted && refresh());
for (const part of document.querySelectorAll("[data-live]")) follow(part);
// A choice on which other fields depend submits the form without them, so that the server chooses them anew.
for (const form of document.querySelectorAll("form[data-submit]")) {
  form.addEventListener("change", ({ target }) => {
    if (target.dataset.submits === undefined || !form.reportValidity()) return;
    const forget = ({ formData }) => target.dataset.submits.split(" ").forEach((name) => formData.delete(name));
    form.addEventListener("formdata", forget, { once: true });
    form.requestSubmit();
  });
}
// What is typed narrows a long list to the options that contain it; the chosen one stays.
for (const input of document.querySelectorAll("input[data-narrows]")) {
  const select = input.form.elements[input.dataset.narrows];
  const all = [...select.options];
  input.closest("label").hidden = false;
  input.addEventListener("input", () => {
    const part = input.value.trim().toLowerCase();
    select.replaceChildren(...all.filter((option) => option.selected || option.text.toLowerCase().includes(part)));
  });
}
// Buttons that copy a whole hash or address; without a clipboard, as on a page without TLS, they stay hidden.
if (navigator.clipboard) {
  const reveal = () => document.querySelectorAll("button[data-copy][hidden]").forEach((button) => (button.hidden = false));
  document.addEventListener("click", async ({ target }) => {
    if (target.dataset?.copy === undefined) return;
    await navigator.clipboard.writeText(target.dataset.copy);
    target.textContent = "Copied";
    setTimeout(() => (target.textContent = "Copy"), 2 * SECOND);
  });
  reveal();
}
// A slash leads to the search, unless it is typed into something.
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) return;
  const search = document.querySelector("input[type=search]");
  if (!search) return;
  event.preventDefault();
  search.focus();
});
// The spaces between groups of digits are for the eye only.
document.addEventListener("copy", (event) => {
  const text = String(getSelection());
  if (!/\d\u202f\d/.test(text)) return;
  event.clipboardData.setData("text/plain", text.replace(/(?<=\d)\u202f(?=\d)/g, ""));
  event.preventDefault();
});
setInterval(refreshTimes, SECOND);
refreshTimes();
