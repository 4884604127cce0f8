// The command table: names for completion, and help from COMMAND DOCS.

import { ask } from "./api.js";
import { asText, fields, items, pairs } from "./resp.js";

/** Commands by their names in upper case; a subcommand has its parent's name before its own. */
let table = null;

/** Loads the table once. A server without COMMAND DOCS gives names alone; a refusal gives none. */
export async function loadDocs() {
  if (table) return table;
  const [docs] = await ask([["COMMAND", "DOCS"]]);
  const loaded = new Map();
  if (docs.kind === "error") {
    const [list] = await ask([["COMMAND"]]);
    for (const row of items(list)) loaded.set(asText(items(row)[0]).toUpperCase(), new Map());
  } else {
    addAll(loaded, docs);
  }
  table = loaded;
  return table;
}

/** Forgets the table, which may be another one for another caller. */
export function forgetDocs() {
  table = null;
}

function addAll(loaded, docs) {
  for (const [name, reply] of pairs(docs)) {
    const entry = fields(reply);
    loaded.set(asText(name).replace("|", " ").toUpperCase(), entry);
    if (entry.has("subcommands")) addAll(loaded, entry.get("subcommands"));
  }
}

/** Names that begin so, shortest first. */
export function complete(text) {
  const start = text.trimStart().toUpperCase();
  if (!table || start === "") return [];
  const shorter = (one, other) => one.length - other.length || (one < other ? -1 : 1);
  return [...table.keys()].filter((name) => name.startsWith(start)).sort(shorter);
}

/** The command that a line begins with: of two words if there is such a subcommand. */
export function commandOf(line) {
  const words = line.trim().toUpperCase().split(/\s+/);
  const two = words.slice(0, 2).join(" ");
  return table?.has(two) ? two : table?.has(words[0]) ? words[0] : null;
}

/** The name and its arguments, as the documentation writes them. */
export const synopsis = (name) => [name, argumentsOf(table.get(name)?.get("arguments"))].filter(Boolean).join(" ");

const HEADINGS = {
  summary: "Summary",
  since: "Since",
  group: "Group",
  complexity: "Complexity",
  deprecated_since: "Deprecated since",
  replaced_by: "Replaced by",
};

/** The facts of a command, by heading. */
export function facts(name) {
  const entry = table.get(name);
  const known = Object.entries(HEADINGS).filter(([key]) => entry?.has(key));
  return known.map(([key, heading]) => [heading, asText(entry.get(key))]);
}

const argumentsOf = (reply, separator = " ") =>
  reply === undefined ? "" : items(reply).map((each) => argumentText(fields(each))).join(separator);

function argumentText(argument) {
  const flags = argument.has("flags") ? items(argument.get("flags")).map(asText) : [];
  const type = asText(argument.get("type"));
  const name = asText(argument.get("display_text") ?? argument.get("name"));
  const token = argument.has("token") ? asText(argument.get("token")) || '""' : "";
  let text = name;
  if (type === "pure-token") text = "";
  else if (type === "oneof") text = argumentsOf(argument.get("arguments"), " | ");
  else if (type === "block") text = argumentsOf(argument.get("arguments"));
  const isOptional = flags.includes("optional");
  if (type === "oneof" && !isOptional) text = `<${text}>`;
  const one = [token, text].filter(Boolean).join(" ");
  if (flags.includes("multiple_token")) text = `${one} [${one} ...]`;
  else if (flags.includes("multiple")) text = `${one} [${text} ...]`;
  else text = one;
  return isOptional ? `[${text}]` : text;
}
