// The server: live figures, INFO, the slow log, memory and clients.

import { ask, run } from "./api.js";
import { argument, count, decode, duration, size } from "./bytes.js";
import { $, attempt, button, el, failure, latest, note, table } from "./dom.js";
import { Plot } from "./plot.js";
import { asBytes, asNumber, asText, items, pairs } from "./resp.js";

/** Milliseconds between two INFO. */
const EVERY = 1000;

const percent = (value) => value.toFixed(1) + " %";
const perSecond = (name) => (now, before) => (before ? (now[name] - before[name]) / ((now.at - before.at) / 1000) : null);

/** Figures, each from two readings of INFO. */
const FIGURES = [
  ["Commands per second", (value) => count(Math.round(value)), perSecond("total_commands_processed")],
  ["Memory", size, (now) => Number(now.used_memory)],
  ["Clients", count, (now) => Number(now.connected_clients)],
  ["Hit rate", percent, hitRate],
  ["Keys", count, (now) => now.keys],
  ["Network out per second", size, perSecond("total_net_output_bytes")],
];

function hitRate(now, before) {
  if (!before) return null;
  const hits = now.keyspace_hits - before.keyspace_hits;
  const all = hits + now.keyspace_misses - before.keyspace_misses;
  return all > 0 ? (100 * hits) / all : null;
}

let plots = null;
let before = null;
let timer = 0;
let isShown = false;

const VIEWS = { Info: info, "Slow log": slowLog, Memory: memory, Clients: clients };

export function startServer() {
  const show = (name) => {
    for (const each of $("server-views").children) each.setAttribute("aria-pressed", String(each.textContent === name));
    return attempt(() => open(VIEWS[name]));
  };
  const view = (name) => button(name, () => show(name), { "aria-pressed": "false" });
  $("server-views").append(...Object.keys(VIEWS).map(view));
  document.addEventListener("visibilitychange", () => plan(0));
}

/** Starts polling while the tab is in view, and ends it. */
export function showServer(visible) {
  isShown = visible;
  if (visible && !plots) {
    plots = FIGURES.map(([title, format]) => new Plot(title, format));
    $("plots").append(...plots.map((plot) => plot.element));
    $("server-views").firstElementChild.click();
  }
  plan(0);
}

/** At most one request at a time and one a second; none while nobody can see it. */
function plan(wait) {
  clearTimeout(timer);
  if (isShown && !document.hidden) timer = setTimeout(poll, wait);
}

async function poll() {
  try {
    const [reply] = await ask([["INFO"]]);
    if (reply.kind === "error") return $("figures-note").replaceChildren(note(reply.value, true));
    $("figures-note").replaceChildren();
    const now = { ...Object.fromEntries(linesOf(reply)), at: performance.now() };
    const databases = Object.entries(now).filter(([name]) => /^db\d+$/.test(name));
    now.keys = databases.reduce((sum, [, value]) => sum + Number(/keys=(\d+)/.exec(value)?.[1] ?? 0), 0);
    FIGURES.forEach(([, , value], at) => plots[at].add(value(now, before)));
    before = now;
  } catch (error) {
    $("figures-note").replaceChildren(failure(error));
    before = null;
  }
  plan(EVERY);
}

/** The fields of INFO as pairs. */
const linesOf = (reply) => asTextLines(reply).filter((line) => line.includes(":")).map((line) => halves(line, ":"));

/** The text before the first sign, and the text behind it. */
const halves = (text, sign) => [text.slice(0, text.indexOf(sign)), text.slice(text.indexOf(sign) + 1)];

/** The lines of a reply, whose ends `asText` would escape. */
const asTextLines = (reply) => (decode(asBytes(reply)) ?? "").split(/\r?\n/);

const showView = latest((parts) => $("server-view").replaceChildren(...parts));
const open = (view) => showView(view().catch((error) => [failure(error)]));

async function info() {
  const sections = [];
  for (const line of asTextLines(await run("INFO"))) {
    if (line.startsWith("# ")) sections.push([line.slice(2), []]);
    else if (line.includes(":")) sections.at(-1)?.[1].push(halves(line, ":"));
  }
  return sections.map(([title, rows]) => {
    const summary = el("summary", { textContent: title });
    return el("details", { open: title === "Server" }, summary, table(["Field", "Value"], rows));
  });
}

async function slowLog() {
  const entries = items(await run("SLOWLOG", "GET", "128")).map(items);
  const rows = entries.map(([id, time, us, args, address, name]) => [
    asText(id),
    new Date(asNumber(time) * 1000).toISOString().replace("T", " ").slice(0, 19),
    duration(asNumber(us) / 1000),
    items(args).map((arg) => argument(asBytes(arg))).join(" "),
    [asText(address), asText(name)].filter(Boolean).join(" "),
  ]);
  return [note(`${rows.length} entries`), table(["Id", "Time (UTC)", "Took", "Command", "Client"], rows)];
}

async function memory() {
  const [doctor, stats] = await ask([["MEMORY", "DOCTOR"], ["MEMORY", "STATS"]]);
  if (stats.kind === "error") throw new Error(stats.value);
  const text = doctor.kind === "error" ? doctor.value : asTextLines(doctor).join("\n");
  return [el("pre", { textContent: text }), table(["Field", "Value"], nested("", stats))];
}

/** Rows of a map, and of the maps in it. */
function nested(prefix, reply) {
  return pairs(reply).flatMap(([name, value]) => {
    const field = prefix + asText(name);
    return items(value).length > 0 ? nested(field + ".", value) : [[field, asText(value)]];
  });
}

async function clients() {
  const lines = asTextLines(await run("CLIENT", "LIST")).filter(Boolean);
  const found = lines.map((line) => new Map(line.split(" ").map((pair) => halves(pair, "="))));
  const columns = ["id", "addr", "name", "user", "db", "age", "idle", "cmd", "tot-mem", "lib-name"];
  const cell = (column, text = "") => (column === "tot-mem" ? size(Number(text)) : text);
  const rows = found.map((client) => columns.map((column) => cell(column, client.get(column))));
  return [note(`${rows.length} clients`), table(columns, rows)];
}
