"use strict";

const $ = (id) => document.getElementById(id);

/** The arguments of a line, as redis-cli reads them. Bytes above ASCII stay text; \x80 and above make an argument binary. */
function split(line) {
  const args = [];
  const pattern = /\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s"']+))(?=\s|$)/gy;
  let end = 0;
  for (let match; (match = pattern.exec(line)); end = pattern.lastIndex) {
    args.push(match[1] !== undefined ? unescaped(match[1]) : match[2] ?? match[3]);
  }
  if (line.slice(end).trim()) throw new Error("quotes that do not end: " + line.slice(end).trim());
  return args;
}

function unescaped(text) {
  const bytes = [];
  let binary = false;
  const names = { n: 10, r: 13, t: 9, b: 8, a: 7 };
  for (const [part, hex, letter] of text.matchAll(/\\x([0-9a-f]{2})|\\(.)|[^\\]+/gis)) {
    if (hex) {
      bytes.push(parseInt(hex, 16));
      binary ||= bytes.at(-1) > 127;
    } else if (letter in names) bytes.push(names[letter]);
    else bytes.push(...new TextEncoder().encode(letter ?? part));
  }
  if (binary) return { base64: btoa(String.fromCharCode(...bytes)) };
  return new TextDecoder().decode(new Uint8Array(bytes));
}

function headers(more = {}) {
  const token = $("token").value.trim();
  return token ? { ...more, Authorization: "Bearer " + token } : more;
}

function show(id, text, bad = false) {
  $(id).textContent = text;
  $(id).classList.toggle("bad", bad);
}

$("commands").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    const commands = $("lines").value.split("\n").filter((line) => line.trim()).map(split);
    const transaction = $("transaction").checked;
    const body = JSON.stringify(commands.length === 1 && !transaction ? commands[0] : commands);
    const path = transaction ? "/v1/transaction" : "/v1";
    show("request", "POST " + path + "\n" + body);
    const response = await fetch(path, { method: "POST", headers: headers({ "Content-Type": "application/json" }), body });
    show("answer", response.status + "\n" + (await response.text()), !response.ok);
  } catch (error) {
    show("answer", String(error), true);
  }
});

let listening = null;

$("subscription").addEventListener("submit", async (event) => {
  event.preventDefault();
  listening?.abort();
  listening = new AbortController();
  const signal = listening.signal;
  show("events", "");
  $("stop").disabled = false;
  const command = $("pattern").checked ? "psubscribe" : "subscribe";
  try {
    // Not EventSource, because that cannot show a token.
    const path = "/v1/" + command + "/" + encodeURIComponent($("channel").value);
    const response = await fetch(path, { headers: headers(), signal });
    if (!response.ok) return show("events", response.status + "\n" + (await response.text()), true);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) if (line.startsWith("data: ")) $("events").append(line.slice(6) + "\n");
    }
    $("events").append("ended\n");
  } catch (error) {
    if (!signal.aborted) show("events", String(error), true);
  } finally {
    if (listening?.signal === signal) $("stop").disabled = true;
  }
});

$("stop").addEventListener("click", () => listening?.abort());
