// The conversation as it is shown: rows in the order of the tape, what is under way behind them.
// Rule 1: a line is shown once, however often it comes: rows are known by the line's id.
// Rule 2: a line without a position is under way; it gets its place when it comes with one.
// Rule 3: who reads further up is not moved.

import { el, when } from "./site.js";
import { grow, growingRow, mark, rowOf } from "./chat-row.js";

const NEAR = 60; // Pixels from the end that still count as the end.

export class Log {
  /** @param did What rows may do (chat-row.js), and `unseen`, called when something new is out of sight. */
  constructor(list, scroller, jump, did) {
    Object.assign(this, { list, scroller, jump, did, me: "" });
    this.rows = new Map(); // id → {line, place, at, element}
    this.growing = new Map(); // stream → {element, html, at}
    this.replaced = new Set();
    this.position = 0; // The greatest that was seen.
    this.isAtEnd = true;
    scroller.addEventListener("scroll", () => this.scrolled(), { passive: true });
    jump.addEventListener("click", () => this.toEnd());
    const sizes = new ResizeObserver(() => this.keep());
    sizes.observe(list);
    sizes.observe(scroller);
  }

  /** The smallest position that is shown; 0 where there is none. */
  get oldest() {
    let found = 0;
    for (const { line } of this.rows.values()) {
      if (line.position && (!found || line.position < found)) found = line.position;
    }
    return found;
  }

  /** Show lines; with `reset` instead of all but what this tab has said and is not on the tape. Returns the new ones. */
  show(lines, { reset = false, isUnsent = () => false } = {}) {
    if (reset) this.empty(isUnsent);
    const fresh = lines.filter((line) => this.put(line));
    this.days();
    this.keep();
    if (!this.isAtEnd && fresh.some((line) => line.author !== "person")) this.jump.hidden = false;
    return fresh;
  }

  /** Show lines above the others; what is in sight stays where it is. */
  showOlder(lines) {
    this.list.setAttribute("aria-live", "off");
    const below = this.scroller.scrollHeight - this.scroller.scrollTop;
    for (const line of lines) this.put(line);
    this.days();
    this.scroller.scrollTop = this.scroller.scrollHeight - below;
    this.live();
  }

  /** Have what comes from now on read aloud. */
  live() {
    clearTimeout(this.quiet);
    this.quiet = setTimeout(() => this.list.setAttribute("aria-live", "polite"), 500);
  }

  /** Show what an answer says so far. */
  partial({ stream, html }) {
    if (this.rows.has(stream)) return;
    let row = this.growing.get(stream);
    if (!row) {
      row = { element: growingRow(stream), at: Date.now(), place: 0, line: { author: "bot" } };
      this.growing.set(stream, row);
      this.list.setAttribute("aria-busy", "true");
      this.list.append(row.element);
    }
    if (row.html === undefined) requestAnimationFrame(() => this.draw(row));
    row.html = html;
  }

  draw(row) {
    const { html } = row;
    row.html = undefined;
    if (!row.element.isConnected) return;
    grow(row.element, html);
    this.keep();
  }

  /** Let go of answers that nobody writes any more. */
  stopGrowing(stream = null) {
    for (const [name, row] of this.growing) {
      if (stream !== null && name !== stream) continue;
      row.element.remove();
      this.growing.delete(name);
    }
    if (!this.growing.size) this.list.removeAttribute("aria-busy");
  }

  /** Say how the sending of a row stands. */
  mark(id, state, refused = false) {
    const row = this.rows.get(id);
    if (row) mark(row.element, state, refused, this.did);
    this.keep();
  }

  drop(id) {
    this.rows.get(id)?.element.remove();
    this.rows.delete(id);
    this.days();
  }

  toEnd() {
    this.isAtEnd = true;
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.jump.hidden = true;
  }

  put(line) {
    if (line.position > this.position) this.position = line.position;
    if (this.replaced.has(line.id)) return false;
    const known = this.rows.get(line.id);
    if (known && !line.position && known.line.position) return false;
    const took = line.replaces ? this.take(line.replaces) : null;
    const row = {
      line,
      at: Date.parse(line.at) || 0,
      place: took?.place ?? line.position,
      element: rowOf(line, this.me, this.did),
    };
    const hadFocus = [known, took].some((one) => one?.element.contains(document.activeElement));
    known?.element.remove();
    this.stopGrowing(line.id);
    this.rows.set(line.id, row);
    this.insert(row);
    if (hadFocus) (row.element.querySelector("button") ?? row.element).focus({ preventScroll: true });
    return !known;
  }

  /** Take away the row that another one replaces; returns it where it was shown. */
  take(id) {
    this.replaced.add(id);
    const row = this.rows.get(id);
    row?.element.remove();
    this.rows.delete(id);
    return row;
  }

  insert(row) {
    const owner = new Map([...this.rows.values(), ...this.growing.values()].map((one) => [one.element, one]));
    let before = null;
    for (let other = this.list.lastElementChild; other; other = other.previousElementSibling) {
      const there = owner.get(other);
      if (there && isBehind(row, there)) break;
      before = other;
    }
    this.list.insertBefore(row.element, before);
  }

  empty(isUnsent) {
    this.stopGrowing();
    for (const [id, { line, element }] of this.rows) {
      if (!line.position && line.author === "person" && isUnsent(id)) continue;
      element.remove();
      this.rows.delete(id);
    }
    this.replaced.clear();
    this.position = 0;
  }

  /** Let a heading stand where a day begins. */
  days() {
    let day = "";
    for (const one of [...this.list.children]) {
      if (one.classList.contains("chat-day")) {
        const next = one.nextElementSibling;
        if (!next || next.classList.contains("chat-day") || dayOf(next) !== one.textContent || day === one.textContent) {
          one.remove();
        } else day = one.textContent;
      } else if (dayOf(one) !== day) {
        day = dayOf(one);
        one.before(el("h2", { class: "chat-day" }, day));
      }
    }
  }

  scrolled() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    this.isAtEnd = scrollHeight - scrollTop - clientHeight < NEAR;
    if (this.isAtEnd) this.jump.hidden = true;
  }

  keep() {
    if (this.isAtEnd) this.scroller.scrollTop = this.scroller.scrollHeight;
  }
}

function isBehind(row, other) {
  if (row.place && other.place && row.place !== other.place) return row.place > other.place;
  // A notice stands behind the line that was the last then.
  if (row.place && other.place && isNotice(row) !== isNotice(other)) return isNotice(row);
  if (!row.place && !isNotice(row)) return true;
  if (!other.place && !isNotice(other)) return false;
  return row.at >= other.at;
}

function isNotice({ line }) {
  return line.author === "notice";
}

function dayOf(element) {
  const at = element.querySelector("time")?.dateTime;
  return at ? when(at, { dateStyle: "full" }) : "";
}
