// Elements. Every text goes in as text; nothing in this page parses HTML.

export const $ = (id) => document.getElementById(id);

const ATTRIBUTES = ["role", "for", "spellcheck"];

/** An element with properties, attributes (also all names with a dash) and children; strings become text. */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === false) continue;
    if (key.includes("-") || ATTRIBUTES.includes(key)) element.setAttribute(key, value);
    else element[key] = value;
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const button = (text, onclick, properties = {}) =>
  el("button", { type: "button", textContent: text, onclick: (event) => attempt(() => onclick(event)), ...properties });

export const note = (text, isBad = false) => el("p", { className: isBad ? "note bad" : "note", textContent: text });

export const failure = (error) => note(error.message, true);

/** Runs an action and tells its failure in the status line. */
export async function attempt(action) {
  try {
    return await action();
  } catch (error) {
    if (error.name !== "AbortError") announce(error.message, true);
  }
}

/** For a place that shows the latest of several answers: waits for an answer, and draws it unless a later one is awaited by then. */
export function latest(draw) {
  let turns = 0;
  return async (answer) => {
    const mine = ++turns;
    const outcome = await answer;
    if (mine === turns) draw(outcome);
  };
}

/** A text in the status line, which screen readers read out. */
export function announce(text, isBad = false) {
  $("status").textContent = text;
  $("status").classList.toggle("bad", isBad);
}

/** A table with a heading row; cells are texts or elements. */
export function table(headings, rows = []) {
  const body = el("tbody");
  const head = el("tr", {}, ...headings.map((heading) => el("th", { scope: "col", textContent: heading })));
  const whole = el("table", {}, el("thead", {}, head), body);
  addRows(body, rows);
  return el("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": "Table" }, whole);
}

/** Adds rows to a table's body. */
export function addRows(body, rows) {
  body.append(...rows.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell)))));
}

/** A form in one line: labelled fields and a button. `onSubmit` gets the fields' texts. */
export function lineForm(label, names, onSubmit, properties = {}) {
  const plain = { autocomplete: "off", spellcheck: "false" };
  const inputs = names.map((name) => el("input", { name, placeholder: name, "aria-label": name, ...plain }));
  const submit = (event) => {
    event.preventDefault();
    attempt(() => onSubmit(...inputs.map((input) => input.value)));
  };
  return el("form", { className: "line", onsubmit: submit, ...properties }, ...inputs, el("button", { textContent: label }));
}

/** Shows content in a dialog, which Esc closes. The focus returns to where it was. */
export function dialog(title, ...content) {
  const close = () => box.close();
  const heading = el("h2", { textContent: title, id: "dialog-title" });
  const box = el("dialog", { "aria-labelledby": "dialog-title" }, heading, ...content, button("Close", close));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

/** Asks a question; true if it is answered by the button of this label. */
export function confirmed(question, label) {
  return new Promise((resolve) => {
    const yes = button(label, () => {
      resolve(true);
      box.close();
    }, { className: "danger" });
    const box = dialog(question, yes);
    box.addEventListener("close", () => resolve(false));
  });
}
