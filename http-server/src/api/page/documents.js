// Strings, HyperLogLogs, JSON documents, Bloom filters, vector sets, and types that this page does not know.

import { ask, run } from "./api.js";
import { count, decode, fromField, hexDump, shown, size } from "./bytes.js";
import { button, el, lineForm, note, table } from "./dom.js";
import { asBytes, asNumber, asText, items, pairs } from "./resp.js";
import { SHOWN, valueView } from "./text.js";

async function string({ key, view, change, reload, mayRun }) {
  const [[canSet], answer] = await Promise.all([mayRun([["SET", key, "v", "KEEPTTL"]]), run("STRLEN", key)]);
  const length = asNumber(answer);
  const save = async (bytes) => {
    await change("SET", key, bytes, "KEEPTTL");
    await reload();
  };
  const show = async (start) => {
    const bytes = asBytes(await run("GETRANGE", key, start, start + SHOWN - 1));
    const isWhole = length <= SHOWN;
    const isHyperLogLog = start === 0 && decode(bytes.subarray(0, 4)) === "HYLL";
    view.replaceChildren(note(size(length)), valueView(bytes, { save: isWhole && canSet && !isHyperLogLog && save }));
    if (isHyperLogLog) view.prepend(await estimate(key));
    if (isWhole) return;
    view.prepend(note(`Bytes ${count(start)} to ${count(start + bytes.length - 1)}`));
    if (start > 0) view.append(button("Previous part", () => show(start - SHOWN)));
    if (start + SHOWN < length) view.append(button("Next part", () => show(start + SHOWN)));
  };
  await show(0);
}

/** A HyperLogLog is a string that PFCOUNT understands. */
async function estimate(key) {
  const [reply] = await ask([["PFCOUNT", key]]);
  return note(reply.kind === "int" ? `HyperLogLog: about ${count(reply.value)} different elements` : reply.value);
}

async function json({ key, view, change, reload, mayRun }) {
  const [canSet] = await mayRun([["JSON.SET", key, "$", "0"]]);
  const content = el("div");
  const show = async (path) => {
    const bytes = asBytes(await run("JSON.GET", key, path));
    const save = async (changed) => {
      await change("JSON.SET", key, path === "." ? "$" : path, changed);
      await reload();
    };
    // Of a path that begins with $, JSON.GET returns a list of matches: no value that JSON.SET would take.
    const canSave = canSet && !path.startsWith("$");
    content.replaceChildren(valueView(bytes, { save: canSave && save, format: "JSON" }));
  };
  view.append(lineForm("Show", ["path, such as $..name"], (path) => show(path || ".")), content);
  await show(".");
}

async function bloom({ key, view, change, reload, mayRun }) {
  const [canAdd] = await mayRun([["BF.ADD", key, "i"]]);
  view.append(facts(await run("BF.INFO", key)));
  const outcome = note("");
  const check = async (item) => {
    const { value } = await run("BF.EXISTS", key, fromField(item));
    outcome.textContent = value === 1 || value === true ? "It was probably added." : "It was not added.";
  };
  const add = async (item) => {
    await change("BF.ADD", key, fromField(item));
    await reload();
  };
  view.append(lineForm("Check", ["item"], check), outcome);
  if (canAdd) view.append(lineForm("Add", ["item"], add));
}

async function vectorSet({ key, view }) {
  view.append(facts(await run("VINFO", key)));
  const sample = items(await run("VRANDMEMBER", key, "100")).map(asBytes);
  const outcome = el("div");
  const near = async (element) => {
    const found = pairs(await run("VSIM", key, "ELE", fromField(element), "WITHSCORES", "COUNT", "20"));
    outcome.replaceChildren(table(["Element", "Similarity"], found.map((pair) => pair.map(asText))));
  };
  view.append(lineForm("Nearest", ["element"], near), outcome);
  view.append(el("h3", { textContent: "Some elements" }), table(["Element"], sample.map((each) => [shown(each, 200)])));
}

/** A type without a view: the serialized value. */
export async function unknown({ key, view }) {
  const bytes = asBytes(await run("DUMP", key));
  view.append(note(`This page has no view of the type. DUMP returns ${size(bytes.length)}:`));
  view.append(el("pre", { className: "value", tabIndex: 0, textContent: hexDump(bytes.subarray(0, 4096)) }));
}

const facts = (reply) => table(["Fact", "Value"], pairs(reply).map((pair) => pair.map(asText)));

export const documents = { string, "ReJSON-RL": json, "MBbloom--": bloom, vectorset: vectorSet };
