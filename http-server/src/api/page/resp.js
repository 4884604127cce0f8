// Redis' protocol, version 3: commands to bytes, bytes to replies. Version 2 is a part of it.
//
// A reply is { kind, value }. Kinds and their values: text, error, big (string); bytes (Uint8Array); int (Number, or a
// string where a Number is not exact); double (Number); bool; null; array, set, push (replies); map (pairs of replies).

import { bytesOf, decode, encode, shown } from "./bytes.js";

/** The bytes of commands, each a list of strings and Uint8Arrays. */
export function encodeCommands(commands) {
  const parts = [];
  for (const command of commands) {
    parts.push(encode(`*${command.length}\r\n`));
    for (const arg of command) {
      const bytes = bytesOf(arg);
      parts.push(encode(`$${bytes.length}\r\n`), bytes, encode("\r\n"));
    }
  }
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** All replies in these bytes. Throws if the last one is incomplete. */
export function parseReplies(bytes) {
  const replies = [];
  const reader = new Reader(bytes);
  while (reader.at < bytes.length) replies.push(reader.reply());
  return replies;
}

const ofKind = (kind, value = null) => ({ kind, value });

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  line() {
    const end = this.bytes.indexOf(13, this.at);
    if (end < 0) throw new Error("the reply is incomplete");
    const line = this.bytes.subarray(this.at, end);
    this.at = end + 2;
    return decode(line) ?? shown(line);
  }

  blob(length) {
    const end = this.at + length;
    if (end + 2 > this.bytes.length) throw new Error("the reply is incomplete");
    const blob = this.bytes.subarray(this.at, end);
    this.at = end + 2;
    return blob;
  }

  list(length) {
    return Array.from({ length }, () => this.reply());
  }

  reply() {
    const mark = String.fromCharCode(this.bytes[this.at++]);
    const line = this.line();
    const length = Number(line);
    switch (mark) {
      case "+": return ofKind("text", line);
      case "-": return ofKind("error", line);
      case ":": return ofKind("int", Number.isSafeInteger(length) ? length : line);
      case "$": return length < 0 ? ofKind("null") : ofKind("bytes", this.blob(length));
      case "=": return ofKind("bytes", this.blob(length).subarray(4));
      case "!": return ofKind("error", shown(this.blob(length)));
      case "*": return length < 0 ? ofKind("null") : ofKind("array", this.list(length));
      case "~": return ofKind("set", this.list(length));
      case ">": return ofKind("push", this.list(length));
      case "%": return ofKind("map", Array.from({ length }, () => this.list(2)));
      case "|": this.list(2 * length); return this.reply();
      case "_": return ofKind("null");
      case "#": return ofKind("bool", line === "t");
      case ",": return ofKind("double", toDouble(line));
      case "(": return ofKind("big", line);
      default: throw new Error("the reply is not Redis' protocol");
    }
  }
}

const toDouble = (text) => (/inf/i.test(text) ? (text[0] === "-" ? -Infinity : Infinity) : Number(text));

/** The elements of a list, of any kind; none of other replies. */
export function items(reply) {
  if (reply.kind === "map") return reply.value.flat();
  return ["array", "set", "push"].includes(reply.kind) ? reply.value : [];
}

/** The pairs of a map, or of a flat list as version 2 has it. */
export function pairs(reply) {
  if (reply.kind === "map") return reply.value;
  const list = items(reply);
  if (list.length > 0 && list.every((item) => item.kind === "array" && item.value.length === 2)) {
    return list.map((item) => item.value);
  }
  return Array.from({ length: list.length >> 1 }, (_, at) => [list[2 * at], list[2 * at + 1]]);
}

/** A map by the names of its fields. */
export const fields = (reply) => new Map(pairs(reply).map(([name, value]) => [asText(name), value]));

/** A reply of one line as text. */
export function asText(reply) {
  if (reply === undefined || reply.kind === "null") return "";
  return reply.kind === "bytes" ? shown(reply.value) : String(reply.value);
}

/** The bytes of a reply of one value. */
export const asBytes = (reply) => (reply.kind === "bytes" ? reply.value : encode(asText(reply)));

export const asNumber = (reply) => Number(asText(reply));
