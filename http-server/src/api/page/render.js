// Replies as redis-cli prints them on a terminal.

import { quote } from "./bytes.js";

const EMPTY = { array: "(empty array)", map: "(empty hash)", set: "(empty set)", push: "(empty push)" };
const SIGNS = { array: ")", push: ")", set: "~", map: "#" };

/** A reply as lines; `indent` goes before all lines but the first. */
export function render(reply, indent = "") {
  const { kind, value } = reply;
  switch (kind) {
    case "error": return `(error) ${value}`;
    case "int": return `(integer) ${value}`;
    case "double": return `(double) ${String(value).replace("Infinity", "inf")}`;
    case "bool": return `(${value})`;
    case "null": return "(nil)";
    case "bytes": return quote(value);
    case "text":
    case "big": return value;
    default: return value.length === 0 ? EMPTY[kind] : list(kind, value, indent);
  }
}

function list(kind, elements, indent) {
  const width = String(elements.length).length;
  const deeper = indent + " ".repeat(width + 2);
  const line = (element, at) => {
    const number = String(at + 1).padStart(width) + SIGNS[kind] + " ";
    if (kind !== "map") return number + render(element, deeper);
    // A list behind a name begins on a line of its own.
    const gap = Array.isArray(element[1].value) && element[1].value.length > 0 ? "\n" + deeper : "";
    return number + render(element[0], deeper) + " => " + gap + render(element[1], deeper);
  };
  return elements.map(line).join("\n" + indent);
}
