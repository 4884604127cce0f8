// Hashes, lists, sets, sorted sets and streams: a table that loads page by page.

import { ask, run } from "./api.js";
import { count, duration, fromField, identity, shown } from "./bytes.js";
import { addRows, attempt, button, confirmed, el, lineForm, note, table } from "./dom.js";
import { asBytes, asNumber, asText, fields, items, pairs } from "./resp.js";
import { pairList, valueCell } from "./text.js";

/** Elements of a page. */
const PAGE = 200;

/**
 * Shows pages of rows. `page(cursor)` returns { rows, next }: cells, and the next page's cursor or null. A row's `id`
 * stands for it once, however often it comes.
 */
async function showPages(view, headings, page, first) {
  const whole = table(headings);
  const body = whole.querySelector("tbody");
  const seen = new Set();
  let cursor = first;
  const more = button("More", () => load());
  const load = async () => {
    const { rows, next } = await page(cursor);
    const fresh = rows.filter(({ id }) => !seen.has(id) && seen.add(id));
    addRows(body, fresh.map(({ cells }) => cells));
    cursor = next;
    more.hidden = next === null;
  };
  view.replaceChildren(whole, more);
  await load();
}

/** A view of pages with a line for a pattern, and one to add elements if that is allowed. */
async function collection({ view, reload }, total, { headings, pageOf, first, filter, add }) {
  const rows = el("div");
  const show = (pattern) => showPages(rows, headings, pageOf(pattern), first(pattern));
  view.append(note(`${count(asNumber(total))} elements`));
  if (filter) view.append(lineForm("Filter", [filter], (text) => show(fromField(text))));
  if (add) {
    const submit = async (...texts) => {
      await add.run(...texts.map(fromField));
      await reload();
    };
    view.append(lineForm(add.label, add.names, submit));
  }
  view.append(rows);
  await show(new Uint8Array());
}

/** Which of these commands the rules allow, and the reply of the one that counts the elements. */
const rightsAndTotal = ({ key, mayRun }, counter, ...commands) => Promise.all([mayRun(commands), run(counter, key)]);

const matching = (pattern) => (pattern.length > 0 ? ["MATCH", pattern] : []);

/** The next cursor of HSCAN and its family. */
const nextOf = (reply) => (asText(reply.value[0]) === "0" ? null : asText(reply.value[0]));

/** Deletes an element after a question, if the rules allow it. */
function removal(context, isAllowed, name, ...command) {
  if (!isAllowed) return "";
  const remove = async () => {
    if (!(await confirmed(`Delete ${name}?`, "Delete"))) return;
    await attempt(async () => {
      await context.change(...command);
      await context.reload();
    });
  };
  return button("Delete", remove, { "aria-label": `Delete ${name}` });
}

async function hash(context) {
  const { key, change, reload } = context;
  const commands = [["HSET", key, "f", "v"], ["HDEL", key, "f"]];
  const [[canSet, canDelete], total] = await rightsAndTotal(context, "HLEN", ...commands);
  const set = (field) => async (value) => {
    await change("HSET", key, field, value);
    await reload();
  };
  const pageOf = (pattern) => async (cursor) => {
    const reply = await run("HSCAN", key, cursor, ...matching(pattern), "COUNT", PAGE);
    const found = pairs(reply.value[1]).map((pair) => pair.map(asBytes));
    const expiries = await fieldExpiries(key, found.map(([field]) => field));
    const rows = found.map(([field, value], at) => {
      const name = shown(field, 200);
      const remove = removal(context, canDelete, name, "HDEL", key, field);
      return { id: identity(field), cells: [name, valueCell(name, value, canSet && set(field)), expiries[at], remove] };
    });
    return { rows, next: nextOf(reply) };
  };
  const add = canSet && { label: "Set", names: ["field", "value"], run: (...pair) => change("HSET", key, ...pair) };
  const headings = ["Field", "Value", "Expires in", ""];
  await collection(context, total, { headings, pageOf, first: () => "0", filter: "MATCH", add });
}

/** The time that each field has left; nothing where the server has no expiry of fields. */
async function fieldExpiries(key, names) {
  if (names.length === 0) return [];
  const [reply] = await ask([["HPTTL", key, "FIELDS", names.length, ...names]]);
  const left = items(reply).map((item) => (item.value > 0 ? duration(item.value) : ""));
  return names.map((_, at) => left[at] ?? "");
}

async function list(context) {
  const { key, change, reload } = context;
  const commands = [["RPUSH", key, "v"], ["LSET", key, "0", "v"]];
  const [[canPush, canSet], total] = await rightsAndTotal(context, "LLEN", ...commands);
  const set = (index) => async (value) => {
    await change("LSET", key, index, value);
    await reload();
  };
  const pageOf = () => async (start) => {
    const values = items(await run("LRANGE", key, start, start + PAGE - 1)).map(asBytes);
    const rows = values.map((value, at) => {
      const index = start + at;
      return { id: index, cells: [String(index), valueCell(`Element ${index}`, value, canSet && set(index))] };
    });
    return { rows, next: values.length === PAGE ? start + PAGE : null };
  };
  const add = canPush && { label: "Push", names: ["value"], run: (value) => change("RPUSH", key, value) };
  await collection(context, total, { headings: ["Index", "Value"], pageOf, first: () => 0, add });
}

async function set(context) {
  const { key, change } = context;
  const commands = [["SADD", key, "m"], ["SREM", key, "m"]];
  const [[canAdd, canDelete], total] = await rightsAndTotal(context, "SCARD", ...commands);
  const pageOf = (pattern) => async (cursor) => {
    const reply = await run("SSCAN", key, cursor, ...matching(pattern), "COUNT", PAGE);
    const rows = items(reply.value[1]).map(asBytes).map((member) => {
      const name = shown(member, 200);
      const remove = removal(context, canDelete, name, "SREM", key, member);
      return { id: identity(member), cells: [valueCell("Member", member), remove] };
    });
    return { rows, next: nextOf(reply) };
  };
  const add = canAdd && { label: "Add", names: ["member"], run: (member) => change("SADD", key, member) };
  await collection(context, total, { headings: ["Member", ""], pageOf, first: () => "0", filter: "MATCH", add });
}

async function sortedSet(context) {
  const { key, change } = context;
  const commands = [["ZADD", key, "0", "m"], ["ZREM", key, "m"]];
  const [[canAdd, canDelete], total] = await rightsAndTotal(context, "ZCARD", ...commands);
  const rowsOf = (reply, rank) =>
    pairs(reply).map(([member, score], at) => {
      const bytes = asBytes(member);
      const name = shown(bytes, 200);
      const remove = removal(context, canDelete, name, "ZREM", key, bytes);
      const place = rank === null ? "" : String(rank + at);
      return { id: identity(bytes), cells: [place, asText(score), valueCell("Member", bytes), remove] };
    });
  const pageOf = (pattern) => async (cursor) => {
    if (pattern.length > 0) {
      const reply = await run("ZSCAN", key, cursor, "MATCH", pattern, "COUNT", PAGE);
      return { rows: rowsOf(reply.value[1], null), next: nextOf(reply) };
    }
    const rows = rowsOf(await run("ZRANGE", key, cursor, cursor + PAGE - 1, "WITHSCORES"), cursor);
    return { rows, next: rows.length === PAGE ? cursor + PAGE : null };
  };
  const add = canAdd && { label: "Add", names: ["score", "member"], run: (...pair) => change("ZADD", key, ...pair) };
  const first = (pattern) => (pattern.length > 0 ? "0" : 0);
  await collection(context, total, { headings: ["Rank", "Score", "Member", ""], pageOf, first, filter: "MATCH", add });
}

async function stream(context) {
  const { key, view, change } = context;
  const commands = [["XADD", key, "*", "f", "v"], ["XDEL", key, "0-1"]];
  const [[canAdd, canDelete], total] = await rightsAndTotal(context, "XLEN", ...commands);
  // Newest first: what a stream is opened for.
  const pageOf = () => async (end) => {
    const entries = items(await run("XREVRANGE", key, end, "-", "COUNT", PAGE)).map(items);
    const rows = entries.map(([id, content]) => {
      const name = asText(id);
      const remove = removal(context, canDelete, name, "XDEL", key, name);
      return { id: name, cells: [name, timeOf(name), pairList(content), remove] };
    });
    return { rows, next: rows.length === PAGE ? "(" + rows.at(-1).id : null };
  };
  const append = (...pair) => change("XADD", key, "*", ...pair);
  const add = canAdd && { label: "Append", names: ["field", "value"], run: append };
  await showGroups(key, view);
  await collection(context, total, { headings: ["ID", "Time", "Fields", ""], pageOf, first: () => "+", add });
}

/** The time in an ID, if it looks like one. */
function timeOf(id) {
  const ms = Number(id.split("-")[0]);
  return ms > 1e11 && ms < 1e14 ? new Date(ms).toISOString().replace("T", " ").slice(0, 23) : "";
}

async function showGroups(key, view) {
  const groups = items(await run("XINFO", "GROUPS", key)).map(fields);
  if (groups.length === 0) return;
  const columns = ["name", "consumers", "pending", "last-delivered-id", "lag"];
  const rows = groups.map((group) => columns.map((column) => asText(group.get(column))));
  view.append(el("h3", { textContent: "Groups" }), table(["Group", "Consumers", "Pending", "Last delivered", "Lag"], rows));
}

export const collections = { hash, list, set, zset: sortedSet, stream };
