// Messages: subscriptions to channels and patterns, and a line to publish.

import { eventBytes, listen, refusals, Refused, run } from "./api.js";
import { fromField, shown } from "./bytes.js";
import { $, announce, attempt, button, el } from "./dom.js";
import { asText } from "./resp.js";

/** Messages that are kept. */
const KEPT = 1000;

/** Most subscriptions: over HTTP/1.1 a browser opens six connections to a server, and the rest of the page needs some. */
const MOST = 4;

/** Milliseconds until a lost stream is asked for again. */
const RETRY = 2000;

const STATES = {
  subscribed: "listening",
  lost: "Redis is away: messages may be missing",
  overflow: "this page was too slow: messages are missing",
};

/** Messages that are not shown yet; they are in the next frame. */
let fresh = [];
let heard = 0;

export function startPubsub() {
  $("subscribe").addEventListener("submit", (event) => {
    event.preventDefault();
    const { channel, pattern } = event.target.elements;
    if (channel.value !== "") attempt(() => subscribe(channel.value, pattern.checked));
  });
  $("publish").addEventListener("submit", (event) => {
    event.preventDefault();
    const { to, message } = event.target.elements;
    attempt(async () => {
      const listeners = await run("PUBLISH", fromField(to.value), fromField(message.value));
      announce(`Published to ${asText(listeners)} subscribers`);
    });
  });
  $("empty").addEventListener("click", () => $("messages").replaceChildren());
}

/** Shows the line to publish if the rules allow it. */
export async function showPubsub() {
  const [reason] = await refusals([["PUBLISH", "channel", "message"]]);
  $("publish").hidden = reason !== null;
}

async function subscribe(name, isPattern) {
  if ($("subscriptions").children.length >= MOST) {
    throw new Error(`There are ${MOST} subscriptions; a pattern covers several channels.`);
  }
  const stop = new AbortController();
  const state = el("span", { className: "note", textContent: "connecting" });
  const label = (isPattern ? "pattern " : "channel ") + name;
  const remove = () => {
    stop.abort();
    entry.remove();
  };
  const stopButton = button("Stop", remove, { "aria-label": `Stop ${label}` });
  const entry = el("li", {}, el("span", { textContent: label }), state, stopButton);
  $("subscriptions").append(entry);
  while (!stop.signal.aborted) {
    try {
      for await (const event of listen(name, isPattern, stop.signal)) onEvent(event, state);
      state.textContent = "ended";
    } catch (error) {
      if (stop.signal.aborted) return;
      state.textContent = error.message;
      // Another try has the same outcome.
      if (error instanceof Refused && error.status >= 400 && error.status < 500) return;
    }
    await new Promise((resolve) => setTimeout(resolve, RETRY));
  }
}

function onEvent(event, state) {
  if (event.event === "message") {
    heard++;
    if (fresh.length === 0) requestAnimationFrame(drawFresh);
    fresh.push({ at: new Date(), ...event });
    if (fresh.length > KEPT) fresh.shift();
    return;
  }
  state.textContent = STATES[event.event] ?? event.event;
}

function drawFresh() {
  const rows = fresh.map(({ at, channel, message }) => {
    const texts = [at.toISOString().slice(11, 23), shown(eventBytes(channel), 200), shown(eventBytes(message), 2000)];
    return el("tr", {}, ...texts.map((text) => el("td", { textContent: text })));
  });
  fresh = [];
  const body = $("messages");
  body.prepend(...rows.reverse());
  while (body.children.length > KEPT) body.lastChild.remove();
  $("heard").textContent = `${heard} messages`;
}
