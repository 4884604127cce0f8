// The browser of keys: SCAN page by page, and the type, time to live and memory of the keys in view.

import { ask, refusals, run } from "./api.js";
import { count, decode, duration, fromField, identity, shown, size } from "./bytes.js";
import { $, announce, attempt, el } from "./dom.js";
import { VirtualList } from "./list.js";
import { asBytes, asNumber, asText, items } from "./resp.js";

/** Keys of a page. */
const PAGE = 500;

/** Keys that one SCAN looks at while a pattern or a type is set: a millisecond of the server's time or less. */
const LOOK_AT = 2000;

/** Longest search for one page, in milliseconds; then "Continue" is offered. */
const PATIENCE = 3000;

const TYPES = ["string", "hash", "list", "set", "zset", "stream", "ReJSON-RL", "MBbloom--", "vectorset"];

/** Milliseconds that rows stay in view until their facts are asked for: not while the list scrolls. */
const REST = 50;

const NO_KEY = "There is no key of this name.";

let list;
let openKey;
let scan = null;
let canMeasure = false;
let timer = 0;

/** Searches so far: one that comes later ends those before it. */
let searches = 0;

/** Starts the list; `open(key)` is called for each key that is chosen. */
export function startKeys(open) {
  openKey = open;
  $("type").append(...TYPES.map((type) => el("option", { value: type, textContent: type })));
  list = new VirtualList($("keys"), {
    draw,
    choose: (item) => openKey(item.key),
    nearEnd: () => attempt(() => scan?.page()),
    inView: (part) => {
      clearTimeout(timer);
      timer = setTimeout(() => attempt(() => describe(part)), REST);
    },
  });
  const search = (event) => {
    event.preventDefault();
    return attempt(begin);
  };
  $("search").addEventListener("submit", search);
  $("type").addEventListener("change", search);
  $("continue").addEventListener("click", () => attempt(() => scan?.page(true)));
}

/** Lists keys from the beginning. */
export async function begin() {
  const mine = ++searches;
  scan?.stop();
  scan = null;
  list.reset();
  status("");
  const pattern = fromField($("pattern").value);
  const [scanRefused, memoryRefused] = await refusals([["SCAN", "0"], ["MEMORY", "USAGE", pattern]]);
  if (mine !== searches) return;
  canMeasure = memoryRefused === null;
  const text = decode(pattern);
  if (pattern.length > 0 && (text === null || !/[*?[\\]/.test(text))) return exact(pattern, mine);
  if (scanRefused !== null) return status(`${scanRefused}. Enter the name of a key.`);
  scan = new Scan(pattern, $("type").value);
  await scan.page();
}

/** A pattern without wildcards is the name of a key, which needs no scan. */
async function exact(key, mine) {
  const type = asText(await run("TYPE", key));
  if (mine !== searches) return;
  if (type === "none") return status(NO_KEY + " Wildcards (*text*) search.");
  list.append([{ key }]);
  status("1 key");
  return openKey(key);
}

/** One walk through all keys. */
class Scan {
  constructor(pattern, type) {
    this.options = [...(pattern.length > 0 ? ["MATCH", pattern] : []), ...(type ? ["TYPE", type] : [])];
    this.cursor = "0";
    this.seen = new Set();
    this.stopped = false;
    this.running = false;
    this.waits = false;
    this.scanned = 0;
  }

  stop() {
    this.stopped = true;
  }

  /** Adds a page of keys, if there are more and none is on its way. */
  async page(isWanted = false) {
    if (this.running || this.stopped || (this.waits && !isWanted)) return;
    this.running = true;
    try {
      await this.load();
    } finally {
      this.running = false;
    }
  }

  /** A later search may end this one during each `await`, so none stands behind the check of `stopped`. */
  async load() {
    const began = performance.now();
    const spent = () => performance.now() - began;
    const found = [];
    const each = this.options.length > 0 ? LOOK_AT : PAGE;
    let total;
    do {
      const [reply] = await ask([["SCAN", this.cursor, ...this.options, "COUNT", each]]);
      total = await this.total();
      if (this.stopped) return;
      if (reply.kind === "error") throw new Error(reply.value);
      this.cursor = asText(reply.value[0]);
      this.scanned = Math.min(this.scanned + each, total);
      found.push(...items(reply.value[1]).map(asBytes).filter((key) => this.isNew(key)));
    } while (this.cursor !== "0" && found.length < PAGE && spent() < PATIENCE);
    this.waits = this.cursor !== "0" && found.length < PAGE;
    if (this.cursor === "0") this.stop();
    list.append(found.map((key) => ({ key })));
    list.drawNow();
    const ms = Math.round(spent());
    $("keys-status").dataset.ms = ms;
    const all = this.cursor === "0" ? "" : `, ${count(this.scanned)} of ${count(total)} looked at`;
    status(`${count(list.items.length)} keys${all}, ${ms} ms`, this.waits);
  }

  /** The number of keys, asked once for each walk. */
  async total() {
    this.size ??= asNumber(await run("DBSIZE"));
    return this.size;
  }

  /** SCAN may return a key twice. */
  isNew(key) {
    const id = identity(key);
    if (this.seen.has(id)) return false;
    return this.seen.add(id);
  }
}

function status(text, canContinue = false) {
  $("keys-status").textContent = text;
  $("continue").hidden = !canContinue;
}

function draw(item) {
  const { key, type, ttl, memory } = item;
  return [
    el("span", { className: "type", textContent: type ?? "" }),
    el("span", { className: "name", textContent: shown(key, 300) || '""' }),
    el("span", { className: "ttl", textContent: ttl > 0 ? duration(ttl) : "" }),
    el("span", { className: "memory", textContent: memory ? size(memory) : "" }),
  ];
}

/** Asks for the facts of rows that have none yet, in one request. */
async function describe(rows) {
  const missing = rows.filter((item) => item.type === undefined);
  if (missing.length === 0) return;
  for (const item of missing) item.type = "";
  const perKey = canMeasure ? 3 : 2;
  const commands = missing.flatMap(({ key }) => [["TYPE", key], ["PTTL", key], ["MEMORY", "USAGE", key]].slice(0, perKey));
  const replies = await ask(commands).catch((error) => {
    for (const item of missing) item.type = undefined;
    throw error;
  });
  missing.forEach((item, at) => {
    const [type, ttl, memory] = replies.slice(at * perKey, (at + 1) * perKey);
    item.type = type.kind === "error" ? "?" : asText(type);
    item.ttl = asNumber(ttl);
    item.memory = memory?.kind === "int" ? memory.value : 0;
  });
  list.redraw();
}

/** Takes a deleted key off the list. */
export function forget(key) {
  const id = identity(key);
  list.items = list.items.filter((item) => identity(item.key) !== id);
  list.redraw();
  announce(`Deleted ${shown(key, 100)}`);
}

/** Puts the focus into the search field. */
export function focusSearch() {
  $("pattern").focus();
  $("pattern").select();
}

