// One value of bytes: as text, as JSON or as hexadecimal digits, and a field to change it.

import { decode, fromField, hexDump, prettyJson, shown, size, toField } from "./bytes.js";
import { attempt, button, dialog, el, note } from "./dom.js";
import { asBytes, asText, pairs } from "./resp.js";

/** Bytes that are shown of a longer value. */
export const SHOWN = 256 * 1024;

const FORMATS = {
  Text: (bytes) => decode(bytes) ?? shown(bytes),
  JSON: (bytes) => prettyJson(decode(bytes) ?? "") ?? "This is no JSON.",
  Hex: (bytes) => hexDump(bytes),
};

/** JSON for objects and lists, hexadecimal digits for bytes that are no text. */
function usual(bytes) {
  const text = decode(bytes);
  if (text === null) return "Hex";
  return /^\s*[[{]/.test(text) && prettyJson(text) !== null ? "JSON" : "Text";
}

/** A view of bytes. With `save(bytes)` it can change them; it is then called for the new ones. */
export function valueView(bytes, { save, format } = {}) {
  const part = bytes.subarray(0, SHOWN);
  const content = el("pre", { className: "value", tabIndex: 0, "aria-label": "Value" });
  const buttons = Object.keys(FORMATS).map((name) => button(name, () => show(name)));
  const show = (name) => {
    content.textContent = FORMATS[name](part);
    buttons.forEach((each) => each.setAttribute("aria-pressed", String(each.textContent === name)));
  };
  const bar = el("div", { className: "bar" }, ...buttons);
  const view = el("div", {}, bar, content);
  if (bytes.length > SHOWN) view.append(note(`The first ${size(SHOWN)} of ${size(bytes.length)}.`));
  else if (save) bar.append(button("Edit", () => content.replaceWith(editor(bytes, save, content, bar))));
  show(format ?? usual(part));
  return view;
}

function editor(bytes, save, content, bar) {
  const field = el("textarea", { value: toField(bytes), rows: 8, "aria-label": "New value", spellcheck: "false" });
  const close = () => {
    form.replaceWith(content);
    bar.hidden = false;
  };
  const submit = (event) => {
    event.preventDefault();
    attempt(async () => {
      await save(fromField(field.value));
      close();
    });
  };
  const hint = note('A value in "quotes" is read as redis-cli reads it: \\n, \\x00.');
  const buttons = el("div", { className: "bar" }, el("button", { textContent: "Save" }), button("Cancel", close));
  const form = el("form", { onsubmit: submit }, field, hint, buttons);
  bar.hidden = true;
  requestAnimationFrame(() => field.focus());
  return form;
}

/** A cell that shows the beginning of a value, and all of it in a dialog. */
export function valueCell(title, bytes, save) {
  const open = () => {
    const saveAndClose = save && (async (changed) => {
      await save(changed);
      box.close();
    });
    const box = dialog(title, valueView(bytes, { save: saveAndClose }));
  };
  return button(shown(bytes, 200) || '""', open, { className: "cell", title: "Show the whole value" });
}

/** The fields of a map or a flat list, each with a cell for its value. */
export function pairList(reply) {
  const lines = pairs(reply).map(([name, value]) => {
    const text = asText(name);
    return el("div", {}, text + ": ", valueCell(text, asBytes(value)));
  });
  return el("div", {}, ...lines);
}
