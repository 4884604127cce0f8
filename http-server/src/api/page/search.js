// Search indexes: their list, their facts, and a line for a query.

import { ask, run } from "./api.js";
import { count, shown, split } from "./bytes.js";
import { $, attempt, button, el, latest, note, table } from "./dom.js";
import { asBytes, asNumber, asText, fields, items } from "./resp.js";
import { pairList } from "./text.js";

const FIGURES = [
  "num_docs", "num_terms", "num_records", "inverted_sz_mb", "hash_indexing_failures", "indexing", "percent_indexed",
];

/** Hits of a page. */
const PAGE = 20;

let openKey;

/** Starts the tab; `open(key)` shows a key that a query has found. */
export function startSearch(open) {
  openKey = open;
  $("index").addEventListener("change", () => attempt(describe));
  $("query").addEventListener("submit", (event) => {
    event.preventDefault();
    attempt(() => find(0));
  });
}

/** Lists the indexes. */
export async function showSearch() {
  const [list] = await ask([["FT._LIST"]]);
  const names = list.kind === "error" ? [] : items(list).map(asText);
  const chosen = $("index").value;
  const option = (name) => el("option", { value: name, textContent: name, selected: name === chosen });
  $("index").replaceChildren(...names.map(option));
  $("query").hidden = names.length === 0;
  if (names.length > 0) return describe();
  $("index-facts").replaceChildren(note(list.kind === "error" ? list.value : "The server has no search index."));
}

function describe() {
  showHits([]);
  return showFacts(run("FT.INFO", $("index").value));
}

const showFacts = latest((reply) => {
  const facts = fields(reply);
  const attributes = items(facts.get("attributes")).map(attribute);
  const rows = FIGURES.filter((name) => facts.has(name)).map((name) => [name, asText(facts.get(name))]);
  $("index-facts").replaceChildren(
    table(["Field", "Name in queries", "Type"], attributes),
    el("details", {}, el("summary", { textContent: "Figures" }), table(["Fact", "Value"], rows)),
  );
});

const showHits = latest((parts) => $("hits").replaceChildren(...parts));

/** A field of an index; RESP2 has flags without a value behind the pairs. */
function attribute(reply) {
  const facts = fields(reply);
  return ["identifier", "attribute", "type"].map((name) => asText(facts.get(name)));
}

/** Shows a page of hits. The first word of the line is the query, options follow it. */
const find = (start) => showHits(hitsFrom(start));

async function hitsFrom(start) {
  const args = split($("query").elements.query.value || "*");
  const index = $("index").value;
  const reply = await run("FT.SEARCH", index, ...args, "LIMIT", start, PAGE);
  const { total, hits } = reply.kind === "map" ? ofMap(reply) : ofList(reply);
  const cells = ({ id, content }) => [
    button(shown(id, 200), () => openKey(id), { className: "cell" }),
    content ? pairList(content) : "",
  ];
  const parts = [note(`${count(total)} hits`), table(["Key", "Fields"], hits.map(cells))];
  if (start > 0) parts.push(button("Previous", () => find(start - PAGE)));
  if (start + PAGE < total) parts.push(button("Next", () => find(start + PAGE)));
  return parts;
}

function ofMap(reply) {
  const facts = fields(reply);
  const hits = items(facts.get("results")).map(fields).map((hit) => ({
    id: asBytes(hit.get("id")),
    content: hit.get("extra_attributes"),
  }));
  return { total: asNumber(facts.get("total_results")), hits };
}

function ofList(reply) {
  const [total, ...rest] = items(reply);
  const hits = [];
  for (const item of rest) {
    if (item.kind === "array") hits.at(-1).content = item;
    else hits.push({ id: asBytes(item) });
  }
  return { total: asNumber(total), hits };
}
