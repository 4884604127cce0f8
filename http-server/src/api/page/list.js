// A list box of any length: only the rows in view are elements.

import { el } from "./dom.js";

/** Height of a row in CSS pixels, as in page.css. */
const ROW = 28;

/** Rows drawn above and below those in view. */
const MARGIN = 6;

export class VirtualList {
  /**
   * `draw(item)` returns a row's children, `choose(item)` is called for a row that is clicked or entered, `nearEnd()`
   * when the last rows come into view, and `inView(items)` after the rows in view have changed.
   */
  constructor(box, { draw, choose, nearEnd, inView }) {
    Object.assign(this, { box, draw, choose, nearEnd, inView, items: [], active: -1, chosen: null, pending: 0 });
    this.rows = el("div", { className: "rows", role: "presentation" });
    box.replaceChildren(this.rows);
    box.addEventListener("scroll", () => this.redraw());
    box.addEventListener("keydown", (event) => this.onKey(event));
    box.addEventListener("click", (event) => {
      const row = event.target.closest("[role=option]");
      if (row) this.enter(Number(row.dataset.at));
    });
    new ResizeObserver(() => this.redraw()).observe(box);
  }

  /** Shows other items from the beginning. */
  reset() {
    this.items = [];
    this.active = -1;
    this.box.scrollTop = 0;
    this.redraw();
  }

  append(items) {
    for (const item of items) this.items.push(item);
    this.redraw();
  }

  /** Draws the rows in view in the next frame. */
  redraw() {
    this.pending ||= requestAnimationFrame(() => {
      this.pending = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const { box, items } = this;
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - MARGIN);
    const end = Math.min(items.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + MARGIN);
    this.rows.style.height = items.length * ROW + "px";
    const part = items.slice(first, end);
    this.rows.replaceChildren(...part.map((item, at) => this.row(item, first + at)));
    box.setAttribute("aria-activedescendant", this.active >= first && this.active < end ? this.idOf(this.active) : "");
    this.inView?.(part);
    if (end >= items.length - MARGIN) this.nearEnd?.();
  }

  idOf(at) {
    return `${this.box.id}-${at}`;
  }

  row(item, at) {
    const row = el("div", {
      id: this.idOf(at),
      className: at === this.active ? "row active" : "row",
      role: "option",
      "aria-selected": String(item === this.chosen),
      "aria-posinset": at + 1,
      "aria-setsize": this.items.length,
    }, ...this.draw(item));
    row.dataset.at = at;
    row.style.top = at * ROW + "px";
    return row;
  }

  onKey(event) {
    const page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key in steps && this.items.length > 0) {
      this.move(Math.min(this.items.length - 1, Math.max(0, this.active + steps[event.key])));
    } else if (event.key === "Enter" && this.active >= 0) {
      this.enter(this.active);
    } else {
      return;
    }
    event.preventDefault();
  }

  move(at) {
    this.active = at;
    const { box } = this;
    if (at * ROW < box.scrollTop) box.scrollTop = at * ROW;
    else if ((at + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (at + 1) * ROW - box.clientHeight;
    this.redraw();
  }

  enter(at) {
    this.active = at;
    this.chosen = this.items[at];
    this.redraw();
    this.choose(this.chosen);
  }
}
