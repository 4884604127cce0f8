// The command line: history, completion and help; answers stand beside their commands.

import { ask, refusals, transaction } from "./api.js";
import { argument, decode, split } from "./bytes.js";
import { commandOf, complete, facts, loadDocs, synopsis } from "./docs.js";
import { $, attempt, button, el } from "./dom.js";
import { render } from "./render.js";

/** Commands and answers that are kept. */
const KEPT = 300;

/** Characters of an answer that are shown. */
const LONGEST = 200_000;

const STORED = "redis-history";
const history = JSON.parse(sessionStorage.getItem(STORED) ?? "[]");
let at = history.length;

const HELP = `help COMMAND   arguments and summary of a command
clear          empties the log, as Ctrl+L does
Tab            completes a name
Up, Down       earlier and later lines`;

/** Commands between MULTI and EXEC; null outside. */
let queued = null;

export function startCli() {
  const line = $("line");
  $("cli").addEventListener("submit", (event) => {
    event.preventDefault();
    const text = line.value;
    line.value = "";
    suggest();
    attempt(() => enter(text));
  });
  line.addEventListener("input", suggest);
  line.addEventListener("keydown", onKey);
  line.addEventListener("focus", () => attempt(async () => {
    await loadDocs();
    suggest();
  }), { once: true });
}

function onKey(event) {
  const line = $("line");
  if (event.key === "ArrowUp" || event.key === "ArrowDown") {
    at = Math.min(history.length, Math.max(0, at + (event.key === "ArrowUp" ? -1 : 1)));
    line.value = history[at] ?? "";
  } else if (event.key === "Tab" && !event.shiftKey && names().length > 0 && !isComplete()) {
    take(names()[0]);
  } else if (event.key === "l" && event.ctrlKey) {
    $("log").replaceChildren();
  } else {
    return;
  }
  event.preventDefault();
  suggest();
}

/** Names that would complete the line. */
const names = () => complete($("line").value).slice(0, 12);

const isComplete = () => names().length === 1 && names()[0] === $("line").value.trim().toUpperCase();

function take(name) {
  const line = $("line");
  line.value = name + " ";
  line.focus();
}

/** Shows the names that begin like the line, or the arguments of its command. */
function suggest() {
  const text = $("line").value;
  const command = commandOf(text);
  $("hint").textContent = command ? synopsis(command) : "";
  const offered = isComplete() ? [] : names();
  $("completions").replaceChildren(...offered.map((name) => button(name, () => {
    take(name);
    suggest();
  }, { tabIndex: -1 })));
}

/** Runs a line and adds it to the log. */
export async function enter(text) {
  if (text.trim() === "") return;
  if (history.at(-1) !== text) history.push(text);
  history.splice(0, history.length - KEPT);
  at = history.length;
  sessionStorage.setItem(STORED, JSON.stringify(history));
  const output = el("pre", { textContent: "…" });
  const entry = el("li", {}, el("pre", { className: "command", textContent: $("prompt").textContent + text }), output);
  $("log").append(entry);
  while ($("log").children.length > KEPT) $("log").firstChild.remove();
  try {
    output.textContent = limited(await answer(text));
  } catch (error) {
    output.textContent = error.message;
    output.classList.add("bad");
  }
  if (output.textContent.startsWith("(error)")) output.classList.add("bad");
  $("prompt").textContent = queued ? "(TX)> " : "> ";
  entry.scrollIntoView({ block: "nearest" });
}

const limited = (text) =>
  text.length > LONGEST ? text.slice(0, LONGEST) + `\n… ${text.length - LONGEST} more characters` : text;

async function answer(text) {
  const args = split(text);
  const name = (decode(args[0]) ?? "").toUpperCase();
  if (name === "HELP" || name === "?") return help(args.slice(1).map((arg) => decode(arg) ?? "").join(" "));
  if (name === "CLEAR") return clear();
  if (name === "MULTI" && !queued) return multi();
  if (queued) return inTransaction(name, args);
  if (/^S?SUBSCRIBE$|^PSUBSCRIBE$/.test(name)) return "The tab Messages subscribes to channels.";
  const [reply] = await ask([args]);
  return render(reply);
}

async function help(name) {
  await loadDocs();
  const command = commandOf(name);
  if (name === "") return HELP;
  if (!command) return `There is no command ${argument(split(name)[0])}.`;
  return [synopsis(command), ...facts(command).map(([heading, text]) => `  ${heading}: ${text}`)].join("\n");
}

function clear() {
  $("log").replaceChildren();
  return "";
}

// All callers share a connection, so this page keeps the commands until EXEC.
function multi() {
  queued = [];
  return "OK";
}

async function inTransaction(name, args) {
  if (name === "DISCARD") {
    queued = null;
    return "OK";
  }
  if (name !== "EXEC") {
    const [reason] = await refusals([args]);
    if (reason !== null) return `(error) ${reason}`;
    queued.push(args);
    return "QUEUED";
  }
  const commands = queued;
  queued = null;
  return commands.length === 0 ? "(empty array)" : render(await transaction(commands));
}
