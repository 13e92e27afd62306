"use strict";
// Renders ../openapi.json. Text enters the page only as text nodes and attributes, never as HTML.

const base = new URL("..", location.href);
const byId = (id) => document.getElementById(id);

/** An element with properties and children; strings become text. */
function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children.filter((child) => child !== undefined && child !== ""));
  return element;
}

const nameOf = (reference) => reference.slice(reference.lastIndexOf("/") + 1);

/** Longer expressions are for programs. */
const PATTERN = 40;

/** A schema as children of an element: its type in one line, with links to named schemas. */
function type(schema) {
  if (!schema || schema === true) return ["anything"];
  if (schema.$ref) return [make("a", { href: "#" + nameOf(schema.$ref) }, nameOf(schema.$ref))];
  const all = (schema.anyOf ?? schema.oneOf ?? schema.allOf)?.filter((one) => one.description !== "Counts as absent.");
  if (all) return all.flatMap((one, n) => (n ? [schema.allOf ? " and " : " or ", ...type(one)] : type(one)));
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(" | ")];
  if ([schema.type].flat().includes("array")) return ["list of ", ...type(schema.items)];
  if (schema.additionalProperties instanceof Object) return ["object by name of ", ...type(schema.additionalProperties)];
  const bounds = ["format", "pattern", "minimum", "maximum", "minLength", "maxLength"]
    .filter((key) => schema[key] !== undefined && !(key === "pattern" && schema.pattern.length > PATTERN)).map((key) => `${key} ${schema[key]}`);
  return [[schema.type ?? "anything"].flat().join(" or ") + (bounds.length ? ` (${bounds.join(", ")})` : "")];
}

/** The members of an object schema as a list. */
function members(schema) {
  const required = schema.required ?? [];
  return make("ul", {}, ...Object.entries(schema.properties ?? {}).map(([name, member]) => {
    const inner = member.properties ?? member.items?.properties;
    return make("li", {}, make("code", {}, name), required.includes(name) ? " " : "? ", ...type(member),
      member.description ? ` – ${member.description}` : "", inner ? members(member.properties ? member : member.items) : "");
  }));
}

/** Shows the way back to the pages, where the server has any. */
async function showHome() {
  const home = await fetch(base, { method: "HEAD" });
  byId("home").hidden = !(home.ok && home.headers.get("content-type")?.startsWith("text/html"));
}

/** The field in which a parameter is entered. */
function field(parameter) {
  const schema = parameter.schema ?? {};
  const kinds = [schema, ...(schema.anyOf ?? [])];
  const words = schema.enum ?? (kinds.some((one) => one.type === "boolean") ? ["true", "false"] : undefined);
  const properties = { name: parameter.name, required: parameter.required };
  const value = parameter.example ?? "";
  if (words) {
    const options = parameter.required ? words : ["", ...words];
    return make("select", properties, ...options.map((word) => make("option", { selected: word === String(value) }, word)));
  }
  const placeholder = schema.default === undefined ? "" : `default ${schema.default}`;
  return make("input", { ...properties, placeholder, value: parameter.in === "path" ? value : "" });
}

/** The request that a form describes. */
function request(path, method, parameters, form) {
  const query = new URLSearchParams();
  for (const parameter of parameters) {
    const value = form.elements[parameter.name].value;
    if (parameter.in === "path") {
      path = path.replace(`{${parameter.name}}`, encodeURIComponent(value));
    } else if (value !== "") {
      const isList = parameter.schema?.type === "array";
      for (const one of isList ? value.split(",") : [value]) query.append(parameter.name, one);
    }
  }
  const url = new URL(path.slice(1) + (query.size ? `?${query}` : ""), base);
  const body = form.elements["request body"]?.value;
  return [url, { method, body, headers: body === undefined ? {} : { "content-type": "application/json" } }];
}

/** Shows an answer: a stream as it arrives until it has 64 KiB, anything else whole. */
async function show(url, options, out) {
  out.hidden = false;
  out.className = "";
  out.textContent = `${options.method} ${url}\n`;
  try {
    const begun = performance.now();
    const response = await fetch(url, options);
    out.textContent += `${response.status} in ${Math.round(performance.now() - begun)} ms\n\n`;
    out.className = response.ok ? "" : "bad";
    if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let size = 0; size < 65536;) {
        const { done, value } = await reader.read();
        if (done) return;
        out.textContent += value;
        size += value.length;
      }
      return reader.cancel();
    }
    const text = await response.text();
    try {
      out.textContent += JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      out.textContent += text;
    }
  } catch (error) {
    out.className = "bad";
    out.textContent += error;
  }
}

function operation(path, method, described) {
  const parameters = described.parameters ?? [];
  const body = described.requestBody?.content["application/json"];
  const out = make("pre", { hidden: true, tabIndex: 0 });
  const form = make("form", {}, ...parameters.map((parameter) => make("label", {},
    make("span", {}, make("code", {}, parameter.name), parameter.required ? " (required) " : " ", parameter.description ?? ""),
    field(parameter), make("small", {}, ...type(parameter.schema)))));
  if (body) {
    const value = JSON.stringify(body.example ?? {}, null, 2);
    form.append(make("label", {}, make("span", {}, "Body: ", ...type(body.schema)),
      make("textarea", { name: "request body", value, spellcheck: false })));
  }
  form.append(make("button", {}, "Send"));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const [url, options] = request(path, method.toUpperCase(), parameters, form);
    show(url, options, out);
  });
  const [media, content] = Object.entries(described.responses["200"].content ?? {})[0] ?? ["", {}];
  return make("details", { id: described.operationId },
    make("summary", {}, make("b", { className: method }, method), make("code", {}, path), make("span", {}, described.summary)),
    form, out, make("p", {}, `200, ${media}: `, ...type(content.schema)));
}

async function load() {
  const response = await fetch(new URL("openapi.json", base));
  if (!response.ok) throw new Error(`${response.url} answered ${response.status}`);
  const api = await response.json();
  document.title = api.info.title;
  byId("title").textContent = `${api.info.title} ${api.info.version}`;
  byId("description").textContent = api.info.description;
  const all = Object.entries({ ...api.paths, ...api["x-streams"] }).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({ described, element: operation(path, method, described) })));
  byId("operations").replaceChildren(...api.tags.map(({ name }) => make("section", {}, make("h2", {}, name),
    ...all.filter(({ described }) => described.tags.includes(name)).map(({ element }) => element))));
  byId("schemas").replaceChildren(...Object.entries(api.components.schemas).map(([name, schema]) =>
    make("details", { id: name }, make("summary", {}, make("code", {}, name), make("span", {}, schema.description ?? "")),
      members(schema))));
  byId("filter").addEventListener("input", (event) => {
    const words = event.target.value.toLowerCase().split(/\s+/);
    for (const { element } of all) {
      const text = element.querySelector("summary").textContent.toLowerCase();
      element.hidden = !words.every((word) => text.includes(word));
    }
  });
  const open = () => {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) target.open = true;
  };
  addEventListener("hashchange", open);
  open();
}

showHome().catch(() => {});
load().catch((error) => byId("operations").replaceChildren(make("p", { className: "bad" }, String(error))));
