// Requests to /v1: commands and their replies, what the rules allow, and messages of channels.

import { encode } from "./bytes.js";
import { encodeCommands, parseReplies } from "./resp.js";

const RESP = "application/x-resp";
const STORED_TOKEN = "redis-token";

/** A request that has no replies. `status` is that of HTTP, or 0 if the server is not reached. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let token = sessionStorage.getItem(STORED_TOKEN) ?? "";

export const getToken = () => token;

/** Sets the token of all later requests. The tab keeps it until it is closed. */
export function setToken(text) {
  token = text.trim();
  if (token) sessionStorage.setItem(STORED_TOKEN, token);
  else sessionStorage.removeItem(STORED_TOKEN);
}

/** Called with true after requests that the server has answered, and with false after others. */
export const watchers = { reached: () => {}, tokenNeeded: () => {} };

const authorized = (headers) => (token ? { ...headers, Authorization: "Bearer " + token } : headers);

async function get(path, options) {
  try {
    const response = await fetch(path, { ...options, headers: authorized(options.headers), cache: "no-store" });
    watchers.reached(true);
    if (response.status === 401) watchers.tokenNeeded();
    return response;
  } catch (error) {
    if (error.name === "AbortError") throw error;
    watchers.reached(false);
    throw new Refused(0, "the server is not reached");
  }
}

/** Sends commands in one request; the status and the replies. */
async function post(path, commands, signal) {
  const headers = { "Content-Type": RESP, Accept: RESP };
  const response = await get(path, { method: "POST", headers, body: encodeCommands(commands), signal });
  const body = new Uint8Array(await response.arrayBuffer());
  return { status: response.status, replies: response.headers.get("Content-Type") === RESP ? parseReplies(body) : [] };
}

const messageOf = ({ status, replies }) => replies[0]?.value?.replace?.(/^ERR /, "") ?? `status ${status}`;

/**
 * The reply to each command, sent in one request. An error is the reply of its command, also if the rules refuse it.
 * Throws Refused if there are no replies at all.
 */
export async function ask(commands, signal) {
  if (commands.length === 0) return [];
  const answer = await post("/v1", commands, signal);
  if (answer.replies.length === commands.length && (answer.status === 200 || answer.status === 400)) return answer.replies;
  if (answer.status !== 403) throw new Refused(answer.status, messageOf(answer));
  if (commands.length === 1) return [{ kind: "error", value: messageOf(answer) }];
  // The server runs none of them if it refuses one.
  const reasons = await refusals(commands);
  const passed = commands.filter((_, at) => reasons[at] === null);
  if (passed.length === commands.length) throw new Refused(403, messageOf(answer));
  const replies = await ask(passed, signal);
  return reasons.map((reason) => (reason === null ? replies.shift() : { kind: "error", value: reason }));
}

/** The reply to one command. Throws if it is an error. */
export async function run(...command) {
  const [reply] = await ask([command]);
  if (reply.kind === "error") throw new Error(reply.value);
  return reply;
}

/** Runs commands as one transaction: its replies, or the error because of which nothing was run. */
export async function transaction(commands) {
  const answer = await post("/v1/transaction", commands);
  if (answer.status !== 200) return { kind: "error", value: messageOf(answer) };
  return answer.replies.at(-1);
}

/** For each command the reason why the rules refuse it, or null. Sends none of them. */
export async function refusals(commands) {
  const answer = await post("/v1/allowed", commands);
  if (answer.replies.length !== commands.length) throw new Refused(answer.status, messageOf(answer));
  return answer.replies.map((reply) => (reply.kind === "error" ? reply.value.replace(/^ERR /, "") : null));
}

/** Yields the events of a channel or a pattern until the signal or the server ends the stream. */
export async function* listen(name, isPattern, signal) {
  // Not EventSource: it cannot send a token.
  const path = `/v1/${isPattern ? "psubscribe" : "subscribe"}/${percentEncoded(encode(name))}`;
  const response = await get(path, { headers: { Accept: "text/event-stream" }, signal });
  if (!response.ok) {
    const { error } = await response.json().catch(() => ({}));
    throw new Refused(response.status, error ?? `status ${response.status}`);
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ; ) {
    const { done, value } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line.startsWith("data: ")) yield JSON.parse(line.slice(6));
  }
}

/** The bytes of a string in an event; those that are not UTF-8 come as base64. */
export function eventBytes(value) {
  if (typeof value === "string") return encode(value);
  return Uint8Array.from(atob(value.base64), (char) => char.charCodeAt(0));
}

/** Bytes for a path or a fragment. */
export function percentEncoded(bytes) {
  const encoded = (byte) => {
    const char = String.fromCharCode(byte);
    return /[A-Za-z0-9_-]/.test(char) ? char : "%" + byte.toString(16).padStart(2, "0");
  };
  return Array.from(bytes, encoded).join("");
}

/** The bytes of a text that `percentEncoded` has made. */
export function percentDecoded(text) {
  const latin = text.replace(/%([0-9a-f]{2})/gi, (_, hex) => String.fromCharCode(parseInt(hex, 16)));
  return Uint8Array.from(latin, (char) => char.charCodeAt(0) & 255);
}
