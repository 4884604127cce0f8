// Starts the page: tabs, token, keyboard, and the address's fragment.

import { getToken, percentDecoded, setToken, watchers } from "./api.js";
import { startCli } from "./cli.js";
import { forgetDocs } from "./docs.js";
import { $, announce, attempt } from "./dom.js";
import { begin, focusSearch, startKeys } from "./keys.js";
import { showPubsub, startPubsub } from "./pubsub.js";
import { showSearch, startSearch } from "./search.js";
import { showServer, startServer } from "./server.js";
import { closeKey, isOpen, openKey } from "./value.js";

/** By tab: the action when it comes into view. */
const SHOWN = {
  keys: () => {},
  console: () => $("line").focus(),
  messages: showPubsub,
  search: showSearch,
  server: () => {},
};

const tabs = [...$("tabs").children];

function select(name) {
  for (const tab of tabs) {
    const isSelected = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", String(isSelected));
    tab.tabIndex = isSelected ? 0 : -1;
    $(tab.getAttribute("aria-controls")).hidden = !isSelected;
  }
  showServer(name === "server");
  attempt(SHOWN[name]);
}

function goTo(name) {
  if (location.hash.slice(1).split("/")[0] !== name) history.replaceState(null, "", "#" + name);
  select(name);
}

function openInKeys(key) {
  select("keys");
  return openKey(key);
}

/** Follows the fragment: #server, or #keys/NAME. */
function follow() {
  const [name, ...key] = location.hash.slice(1).split("/");
  select(name in SHOWN ? name : "keys");
  if (key.length > 0) attempt(() => openKey(percentDecoded(key.join("/"))));
}

$("tabs").addEventListener("click", (event) => {
  if (event.target.role === "tab") goTo(event.target.id.slice("tab-".length));
});
$("tabs").addEventListener("keydown", (event) => {
  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  if (!(event.key in steps)) return;
  const at = tabs.indexOf(document.activeElement) + steps[event.key] + tabs.length;
  const tab = tabs[at % tabs.length];
  tab.click();
  tab.focus();
});

$("token").value = getToken();
$("access").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken($("token").value);
  isTokenAsked = false;
  forgetDocs();
  announce($("token").value ? "The tab keeps the token until it is closed." : "No token is sent.");
  attempt(begin);
  follow();
});

let isReached = true;
let isTokenAsked = false;
watchers.reached = (now) => {
  if (now !== isReached) announce(now ? "" : "The server is not reached.", !now);
  isReached = now;
};
watchers.tokenNeeded = () => {
  if (!isTokenAsked) $("token").focus();
  isTokenAsked = true;
};

const isField = (element) => /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName);

document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !isField(event.target) && !event.ctrlKey && !event.altKey && !event.metaKey) {
    event.preventDefault();
    goTo("keys");
    focusSearch();
  } else if (event.key === "Escape" && !document.querySelector("dialog[open]")) {
    if (!$("panel-keys").hidden && isOpen()) {
      closeKey();
      $("keys").focus();
    } else {
      event.target.blur();
    }
  }
});
addEventListener("hashchange", follow);

startKeys(openInKeys);
startCli();
startPubsub();
startSearch(openInKeys);
startServer();
follow();
attempt(begin);
