// A small plot: the last two minutes of one figure.

import { $ } from "./dom.js";

/** Points that are kept; there is one a second. */
const POINTS = 120;

const WIDTH = 240;
const HEIGHT = 48;

export class Plot {
  /** `format(value)` makes the text beside the line. */
  constructor(title, format) {
    this.format = format;
    this.values = [];
    // A template has the SVG elements, which need a namespace that HTML alone gives without a name.
    this.element = $("plot").content.firstElementChild.cloneNode(true);
    this.element.querySelector("figcaption span").textContent = title;
    this.svg = this.element.querySelector("svg");
    this.svg.setAttribute("aria-label", title);
  }

  /** Adds a value; null stands for a gap. */
  add(value) {
    this.values.push(value);
    if (this.values.length > POINTS) this.values.shift();
    const known = this.values.filter((each) => each !== null);
    this.element.querySelector("output").textContent = value === null ? "–" : this.format(value);
    if (known.length === 0) return;
    const low = Math.min(0, ...known);
    const high = Math.max(...known, low + 1e-9);
    const x = (at) => ((at + POINTS - this.values.length) * WIDTH) / (POINTS - 1);
    const y = (each) => HEIGHT - 2 - ((each - low) * (HEIGHT - 4)) / (high - low);
    let path = "";
    let isDown = false;
    this.values.forEach((each, at) => {
      if (each !== null) path += `${isDown ? "L" : "M"}${x(at).toFixed(1)} ${y(each).toFixed(1)}`;
      isDown = each !== null;
    });
    this.svg.firstElementChild.setAttribute("d", path);
    this.svg.lastElementChild.textContent = `from ${this.format(Math.min(...known))} to ${this.format(Math.max(...known))}`;
  }
}
