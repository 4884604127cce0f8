// One key: its facts, what may be done with it, and the view of its type.

import { ask, percentEncoded, refusals, run } from "./api.js";
import { duration, equal, shown, size } from "./bytes.js";
import { collections } from "./collections.js";
import { documents, unknown } from "./documents.js";
import { $, announce, attempt, button, confirmed, el, failure, lineForm, note } from "./dom.js";
import { forget } from "./keys.js";
import { asText } from "./resp.js";

const VIEWS = { ...collections, ...documents };

let current = null;

/** Shows a key. */
export async function openKey(key) {
  current = key;
  const panel = $("value");
  history.replaceState(null, "", "#keys/" + percentEncoded(key));
  try {
    const content = await describe(key);
    if (current === key) panel.replaceChildren(...content);
  } catch (error) {
    if (current === key) panel.replaceChildren(heading(key), failure(error));
  }
  document.body.classList.add("has-value");
}

/** Empties the panel. */
export function closeKey() {
  current = null;
  $("value").replaceChildren(note("Choose a key."));
  history.replaceState(null, "", "#keys");
  document.body.classList.remove("has-value");
}

export const isOpen = () => current !== null;

const heading = (key) => el("h2", { className: "key", textContent: shown(key, 1000) || '""', tabIndex: -1 });

async function describe(key) {
  const [type, ttl, memory, encoding] = await ask([
    ["TYPE", key], ["PTTL", key], ["MEMORY", "USAGE", key], ["OBJECT", "ENCODING", key],
  ]);
  if (type.kind === "error") throw new Error(type.value);
  const name = asText(type);
  if (name === "none") return [heading(key), note("The key does not exist. It has expired, or something has deleted it.")];
  const facts = [name];
  if (encoding.kind === "bytes") facts.push(asText(encoding));
  if (memory.kind === "int") facts.push(size(memory.value));
  if (ttl.kind === "int") facts.push(ttl.value < 0 ? "no expiry" : `expires in ${duration(ttl.value)}`);
  const view = el("div", { className: "view" });
  const context = {
    key,
    view,
    // Not if another key has been opened since.
    reload: async () => current === key && openKey(key),
    change: async (...command) => {
      await run(...command);
      announce(`${command[0]}: done`);
    },
    mayRun: async (commands) => (await refusals(commands)).map((reason) => reason === null),
  };
  const fill = (VIEWS[name] ?? unknown)(context).catch((error) => view.append(failure(error)));
  const [bar] = await Promise.all([actions(context, ttl.value), fill]);
  const line = el("p", { className: "facts", textContent: facts.join(" · ") });
  return [heading(key), line, bar, view];
}

/** Buttons for what the rules allow; a note if they allow nothing. */
async function actions({ key, change, reload, mayRun }, ttl) {
  const [canDelete, canExpire, canPersist] = await mayRun([["DEL", key], ["EXPIRE", key, "1"], ["PERSIST", key]]);
  const bar = el("div", { className: "bar" }, button("Refresh", reload), button("Close", closeKey));
  const after = (action) => async (...args) => {
    await action(...args);
    await reload();
  };
  if (canExpire) {
    bar.append(lineForm("Expire", ["seconds"], after((seconds) => change("EXPIRE", key, seconds)), { id: "expire" }));
  }
  if (canPersist && ttl >= 0) bar.append(button("Persist", after(() => change("PERSIST", key))));
  if (canDelete) bar.append(button("Delete", () => remove(key, change), { className: "danger" }));
  if (!canExpire && !canDelete) bar.append(el("span", { className: "note", textContent: "read-only" }));
  return bar;
}

async function remove(key, change) {
  if (!(await confirmed(`Delete ${shown(key, 100)}?`, "Delete"))) return;
  await attempt(async () => {
    await change("DEL", key);
    forget(key);
    if (current && equal(current, key)) closeKey();
  });
}
