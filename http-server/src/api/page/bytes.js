// Bytes and text: how the page shows bytes, and the quoting that redis-cli reads and prints.

const encoder = new TextEncoder();
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export const encode = (text) => encoder.encode(text);

/** The text of bytes that are UTF-8; null for all others. */
export function decode(bytes) {
  try {
    return strict.decode(bytes);
  } catch {
    return null;
  }
}

/** A string with one character per byte, by which bytes can be compared and put into a Map. */
export function identity(bytes) {
  let text = "";
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
}

export const equal = (one, other) => one.length === other.length && one.every((byte, at) => byte === other[at]);

/** The bytes of an argument: a string stands for its UTF-8. */
export const bytesOf = (arg) => (arg instanceof Uint8Array ? arg : encode(String(arg)));

const ESCAPES = new Map([[7, "\\a"], [8, "\\b"], [9, "\\t"], [10, "\\n"], [13, "\\r"]]);
const hex2 = (byte) => byte.toString(16).padStart(2, "0");
const escapedByte = (byte) => ESCAPES.get(byte) ?? "\\x" + hex2(byte);

// Control characters, and those that reorder or hide the text around them.
const UNSAFE = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu;

const escapedUnsafe = (text) => text.replace(UNSAFE, (char) => [...encode(char)].map(escapedByte).join(""));

/** One line for a cell or a heading: UTF-8 with control characters escaped, other bytes in quotes. */
export function shown(bytes, limit = Infinity) {
  const cut = bytes.length > limit;
  const part = cut ? whole(bytes.subarray(0, limit)) : bytes;
  const text = decode(part);
  return (text === null ? quote(part) : escapedUnsafe(text)) + (cut ? `… (${size(bytes.length)})` : "");
}

/** Without a last character that a limit has cut. */
function whole(bytes) {
  for (let end = bytes.length; end > bytes.length - 4 && end > 0; end--) {
    if (decode(bytes.subarray(0, end)) !== null) return bytes.subarray(0, end);
  }
  return bytes;
}

/** A quoted string as redis-cli prints it, except that valid UTF-8 stays readable. */
export function quote(bytes) {
  const text = decode(bytes);
  if (text !== null) return '"' + escapedUnsafe(text.replace(/["\\]/g, "\\$&")) + '"';
  let out = '"';
  for (const byte of bytes) {
    if (byte === 34 || byte === 92) out += "\\" + String.fromCharCode(byte);
    else out += byte >= 32 && byte < 127 ? String.fromCharCode(byte) : escapedByte(byte);
  }
  return out + '"';
}

/** An argument of a command line: quoted where it has to be. */
export function argument(bytes) {
  const text = decode(bytes);
  return text !== null && /^[^\s"'\\\p{Cc}]+$/u.test(text) ? text : quote(bytes);
}

const NAMED = { n: 10, r: 13, t: 9, b: 8, a: 7 };
const INVALID = "Invalid argument(s)";

/**
 * The arguments of a line, as redis-cli splits it: "…" with \n, \t, \xff and the like; '…' with \' alone.
 * Throws on quotes that do not end, and on text directly behind a closing quote.
 */
export function split(line) {
  const args = [];
  let at = 0;
  const isSpace = (char) => char === undefined || /\s/.test(char);
  for (;;) {
    while (at < line.length && isSpace(line[at])) at++;
    if (at >= line.length) return args;
    const bytes = [];
    let mark = "";
    for (; ; at++) {
      const char = line[at];
      if (mark === "") {
        if (isSpace(char)) break;
        if (char === '"' || char === "'") mark = char;
        else at += push(bytes, line, at);
      } else if (char === undefined) {
        throw new Error(INVALID);
      } else if (char === mark) {
        if (!isSpace(line[at + 1])) throw new Error(INVALID);
        mark = "";
      } else if (mark === '"' && char === "\\" && at + 1 < line.length) {
        const hex = /^x([0-9a-f]{2})/i.exec(line.slice(at + 1, at + 4));
        if (hex) bytes.push(parseInt(hex[1], 16));
        else if (line[at + 1] in NAMED) bytes.push(NAMED[line[at + 1]]);
        else at += push(bytes, line, at + 1);
        at += hex ? 3 : 1;
      } else if (mark === "'" && char === "\\" && line[at + 1] === "'") {
        bytes.push(39);
        at++;
      } else {
        at += push(bytes, line, at);
      }
    }
    args.push(new Uint8Array(bytes));
  }
}

/** Adds the character that begins here; returns the code units it has behind the first. */
function push(bytes, line, at) {
  const char = String.fromCodePoint(line.codePointAt(at));
  bytes.push(...encode(char));
  return char.length - 1;
}

/** The bytes of a text field: a text that is one quoted string stands for the bytes in the quotes. */
export function fromField(text) {
  if (!/^"[^]*"$/.test(text) || text.length < 2) return encode(text);
  const args = split(text.replaceAll("\n", "\\n"));
  return args.length === 1 ? args[0] : encode(text);
}

/** The text for a field that `fromField` turns into these bytes again. */
export function toField(bytes) {
  const text = decode(bytes);
  return text !== null && !/^"|[\0-\x08\x0b-\x1f\x7f]/.test(text) ? text : quote(bytes);
}

/** Lines of sixteen bytes: offset, hexadecimal digits, ASCII. */
export function hexDump(bytes, offset = 0) {
  const lines = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.subarray(at, at + 16)];
    const digits = row.map(hex2).join(" ").padEnd(47);
    const ascii = row.map((byte) => (byte >= 32 && byte < 127 ? String.fromCharCode(byte) : ".")).join("");
    lines.push((offset + at).toString(16).padStart(8, "0") + "  " + digits + "  " + ascii);
  }
  return lines.join("\n");
}

/** A JSON text with a line per member, or null if it is none. Numbers stay as they are written. */
export function prettyJson(text) {
  try {
    JSON.parse(text);
  } catch {
    return null;
  }
  let out = "";
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[[{]\s*[\]}]|[[\]{},:]|[^\s[\]{},:"]+/g)) {
    if (token === "{" || token === "[") {
      depth++;
      out += token + line();
    } else if (token === "}" || token === "]") {
      depth--;
      out += line() + token;
    } else if (token === ",") out += token + line();
    else if (token === ":") out += ": ";
    else out += /^[[{]/.test(token) ? token[0] + token.at(-1) : token;
  }
  return out;
}

/** Bytes as text: 12 B, 3.4 KiB. */
export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit < units.length - 1; unit++) bytes /= 1024;
  return (unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)) + " " + units[unit];
}

/** Milliseconds as text: 3.2 s, 5 m, 2 h, 9 d. */
export function duration(ms) {
  if (ms < 1000) return Math.round(ms) + " ms";
  if (ms < 60e3) return (ms / 1000).toFixed(1) + " s";
  if (ms < 3600e3) return Math.floor(ms / 60e3) + " m";
  if (ms < 48 * 3600e3) return Math.floor(ms / 3600e3) + " h";
  return Math.floor(ms / 86400e3) + " d";
}

export const count = (number) => Number(number).toLocaleString("en");
