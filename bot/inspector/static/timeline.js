// The timeline: rows in and near the view are in the page, all others are only room to scroll in.
// Rule 1: what comes from a tape is text.
// Rule 2: a place is an index among ids (`top`); where there are more rows than a browser can scroll over, what is
//   scrolled by a little moves rows by as much, and the bar shows about where one is.
import { _, ngettext, number } from "./language.js";
import { api, busy, el, toast, when } from "./site.js";
import { place, show } from "./timeline-entry.js";
import { Entries } from "./timeline-entries.js";

const HIGHEST = 8_000_000; // Pixels that every browser can scroll over.
const BESIDE = 12; // Rows made before and behind those in view.
const CHAPTERS = 500;
const MOST = 500; // Ids of an answer to what is new.

class Timeline {
  constructor(view) {
    const { tape, first, version, entry, labels } = view.dataset;
    this.view = view;
    this.size = view.querySelector(".tl-size");
    this.rows = view.querySelector(".tl-rows");
    this.tape = tape;
    this.labels = JSON.parse(labels);
    this.shown = new Map(); // Row elements by id.
    this.at = Number(entry) || Number(version); // The current entry.
    this.entries = new Entries(tape, Number(first), Number(version), (now) => this.came(now));
    this.heard = this.entries.version; // The last id that was told of.
    this.top = 0;
    this.scrolledTo = 0;
    view.addEventListener("scroll", () => this.scrolled(), { passive: true });
    view.addEventListener("keydown", (event) => this.key(event));
    view.addEventListener("click", (event) => this.clicked(event));
    new ResizeObserver(() => this.resized()).observe(view);
  }

  /** Show the rows of the page until those of the API are there. */
  start() {
    this.measure();
    if (this.view.dataset.entry) this.reveal(this.at, "middle");
    else this.moveTo(this.most);
    this.view.dataset.ready = "1";
  }

  // Geometry.

  get count() {
    return Math.max(this.entries.version - this.entries.first + 1, 0);
  }

  /** How many rows are in view, with fractions. */
  get inView() {
    return this.view.clientHeight / this.row;
  }

  /** The highest place. */
  get most() {
    return Math.max(this.count - this.inView, 0);
  }

  measure() {
    // In rem: a row grows with the text that somebody has set in the browser.
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    this.row = (parseFloat(getComputedStyle(this.view).getPropertyValue("--row")) || 2.25) * rem;
    this.clock = matchMedia("(max-width: 46rem)").matches ? { dateStyle: "short", timeStyle: "short" } : undefined;
    this.height = Math.min(this.count * this.row, HIGHEST);
    this.exact = this.height === this.count * this.row;
    this.size.style.height = `${this.height}px`;
    this.view.setAttribute("aria-rowcount", this.entries.version);
  }

  resized() {
    const [end, top] = [this.isAtEnd(), this.top];
    this.measure();
    for (const one of this.shown.values()) one.remove();
    this.shown.clear();
    this.moveTo(end ? this.most : top);
  }

  isAtEnd() {
    return this.top >= this.most - 1;
  }

  /** Move so that a place is at the top of the view. */
  moveTo(top) {
    this.top = Math.min(Math.max(top, 0), this.most);
    const room = this.height - this.view.clientHeight;
    const pixels = this.exact ? this.top * this.row : this.most ? (this.top / this.most) * room : 0;
    this.view.scrollTop = Math.round(pixels);
    this.scrolledTo = this.view.scrollTop;
    this.render();
  }

  scrolled() {
    const now = this.view.scrollTop;
    const by = now - this.scrolledTo;
    if (!by) return;
    const room = this.height - this.view.clientHeight;
    this.scrolledTo = now;
    if (this.exact) this.top = now / this.row;
    else if (now <= 0) this.top = 0;
    else if (now >= room - 1) this.top = this.most;
    else if (Math.abs(by) < 2 * this.view.clientHeight) this.top = Math.min(Math.max(this.top + by / this.row, 0), this.most);
    else this.top = (now / room) * this.most;
    this.render();
  }

  /** Bring an entry into view; to its middle where that is asked for. */
  reveal(id, where = "near") {
    const index = id - this.entries.first;
    if (where === "middle") this.moveTo(index - (this.inView - 1) / 2);
    else if (index < this.top) this.moveTo(index);
    else if (index > this.top + this.inView - 1) this.moveTo(index - this.inView + 1);
    else this.render();
  }

  // Rows.

  render() {
    const { first, version } = this.entries;
    const begin = Math.max(Math.floor(this.top) - BESIDE, 0) + first;
    const end = Math.min(Math.ceil(this.top + this.inView) + BESIDE + first, version);
    this.entries.want(begin, end);
    if (!this.rows.classList.contains("tl-live")) {
      // The page's own rows stay until there are others.
      if (this.count && this.entries.get(Math.min(begin + BESIDE, end)) === undefined) return;
      this.rows.replaceChildren();
      this.rows.classList.add("tl-live");
    }
    for (const [id, one] of this.shown) {
      if (id >= begin && id <= end) continue;
      one.remove();
      this.shown.delete(id);
    }
    const base = this.exact ? 0 : this.view.scrollTop - this.top * this.row;
    for (let id = begin; id <= end; id++) {
      const known = this.entries.get(id);
      let one = this.shown.get(id);
      if (!one || (one.ariaBusy === "true" && known !== undefined)) {
        const made = this.made(id, known);
        if (one) one.replaceWith(made);
        else this.insert(made, id);
        this.shown.set(id, (one = made));
      }
      one.style.transform = `translateY(${base + (id - first) * this.row}px)`;
      one.classList.toggle("current", id === this.at);
      one.setAttribute("aria-selected", id === this.at);
    }
    const here = this.shown.get(this.at);
    if (here) this.view.setAttribute("aria-activedescendant", here.id);
    else this.view.removeAttribute("aria-activedescendant");
  }

  insert(made, id) {
    // In the order of ids, for whoever reads the page in its order.
    const next = this.shown.get(id + 1);
    if (next) next.before(made);
    else this.rows.append(made);
  }

  made(id, known) {
    const props = { class: "tl-row", role: "row", id: `entry-${id}`, "aria-rowindex": id, dataset: { id } };
    const name = el("span", { class: "tl-id mono", role: "rowheader" }, `#${id}`);
    if (!known) {
      const text = known === null ? _("No entry: removed by a reset, or damaged.") : "…";
      const row = el("div", { ...props, "aria-busy": String(known === undefined) }, name, el("span", { class: "tl-text", role: "gridcell" }, text));
      row.classList.add("gap");
      return row;
    }
    const [label, kind] = this.labels[known.category];
    const row = el(
      "div",
      { ...props, "aria-busy": "false" },
      name,
      el("span", { class: "tl-time", role: "gridcell" }, known.time ? el("time", { datetime: known.time, title: known.time }, when(known.time, this.clock)) : null),
      el("span", { class: "tl-kind", role: "gridcell" }, el("span", { class: `badge ${kind}` }, label)),
      el("span", { class: "tl-who", role: "gridcell", dir: "auto" }, known.who),
      el("span", { class: "tl-text", role: "gridcell", dir: "auto" }, el("a", { href: place(this.tape, id), tabindex: "-1" }, known.text || _("(nothing)"))),
    );
    row.dataset.category = known.category;
    row.classList.toggle("boundary", known.boundary);
    row.classList.toggle("erased", known.erased);
    return row;
  }

  // What people do.

  /** Make an entry the current one, and show it. */
  go(id, where = "near") {
    this.at = Math.min(Math.max(id, this.entries.first), this.entries.version);
    this.reveal(this.at, where);
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(Math.floor(this.inView) - 1, 1);
    const moves = {
      ArrowDown: this.at + 1,
      ArrowUp: this.at - 1,
      PageDown: this.at + page,
      PageUp: this.at - page,
      Home: this.entries.first,
      End: this.entries.version,
    };
    if (event.key in moves) this.go(moves[event.key]);
    else if (event.key === "Enter") this.open(this.at);
    else return;
    event.preventDefault();
  }

  clicked(event) {
    const row = event.target.closest(".tl-row[data-id]");
    // Another tab is the browser's affair; who marks words wants no dialog.
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey || String(getSelection())) return;
    event.preventDefault();
    this.open(Number(row.dataset.id));
  }

  open(id) {
    this.go(id);
    history.replaceState(null, "", place(this.tape, this.at));
    return busy(this.view, () => show(this.tape, this.at, this.labels, { go: (to) => this.open(to), back: this.view }));
  }

  // What comes new.

  came(version) {
    if (version > this.entries.version) this.grow([], version);
    else this.render();
  }

  grow(entries, version) {
    const end = this.isAtEnd();
    this.entries.add(entries, version);
    if (!this.entries.windows.size) this.forget();
    this.measure();
    if (end) this.moveTo(this.most);
    else this.moveTo(this.top);
    tellCount(this, end);
  }

  /** Read all anew: a command changed something, or words were erased. */
  forget() {
    this.entries.flush();
    for (const one of this.shown.values()) one.setAttribute("aria-busy", "true");
  }

  async follow() {
    for (;;) {
      if (document.hidden) await new Promise((seen) => document.addEventListener("visibilitychange", seen, { once: true }));
      const asked = performance.now();
      try {
        const news = await api("/follow", { tape: this.tape, after: this.entries.version });
        const { version } = this.entries;
        // Of many there are only the first, and of ids that a reset dropped nothing.
        if (news.version > version) this.grow(news.entries, news.entries.at(-1)?.id ?? Math.min(version + MOST, news.version));
        // Where many wait, nobody is made to.
        else if (performance.now() - asked < 1000) await pause(5000);
        else {
          // Words may have been erased by what is on another tape.
          this.forget();
          this.render();
        }
      } catch (error) {
        if (error.status === 401 || error.status === 404) return;
        await pause(5000);
      }
    }
  }
}

function pause(milliseconds) {
  return new Promise((later) => setTimeout(later, milliseconds));
}

function tellCount(timeline, seen) {
  const { version } = timeline.entries;
  const fresh = version - timeline.heard;
  document.getElementById("count").textContent = ngettext("{n} entry", "{n} entries", version);
  document.getElementById("to").max = version;
  const button = document.getElementById("newest");
  if (seen) timeline.heard = version;
  button.textContent = seen || !fresh ? _("Newest") : _("{number} new", { number: number(fresh) });
  button.classList.toggle("primary", !seen && fresh > 0);
  document.getElementById("live").textContent = seen || !fresh ? "" : ngettext("{n} new entry", "{n} new entries", fresh);
}

async function chapters(timeline) {
  const answer = await api("/entries/anchors", { tape: timeline.tape, limit: CHAPTERS });
  const list = document.getElementById("chapters");
  const marks = answer.anchors.map((one) => {
    const link = el("a", { href: place(timeline.tape, one.entry), class: one.boundary ? "boundary" : "" },
      el("bdi", {}, one.title || one.name), el("small", { translate: "no" }, `${one.title ? `${one.name}, ` : ""}#${one.entry}, ${when(one.time)}`));
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      timeline.go(one.entry, "middle");
      timeline.view.focus();
    });
    return el("li", {}, link);
  });
  list.replaceChildren(...(marks.length ? marks.reverse() : [el("li", { class: "muted" }, _("None yet"))]));
  if (answer.total > marks.length) list.append(el("li", { class: "muted small" }, _("The newest {number} of {total}.", { number: number(marks.length), total: number(answer.total) })));
}

function begin(view) {
  const timeline = new Timeline(view);
  timeline.start();
  const jump = document.getElementById("jump");
  jump.addEventListener("submit", (event) => {
    event.preventDefault();
    timeline.go(Number(jump.elements.entry.value), "middle");
    view.focus();
  });
  document.getElementById("newest").addEventListener("click", () => {
    timeline.heard = timeline.entries.version;
    timeline.go(timeline.entries.version);
    tellCount(timeline, true);
    view.focus();
  });
  document.addEventListener("tapebot:changed", (event) => {
    event.preventDefault();
    timeline.forget();
    timeline.render();
  });
  const rail = document.getElementById("rail");
  rail.open = matchMedia("(min-width: 60.01rem)").matches;
  chapters(timeline).catch((error) => toast(error.message, "bad"));
  timeline.follow();
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest("input, textarea, select")) return;
  const field = document.getElementById({ "/": "words", g: "to" }[event.key] ?? "");
  if (!field) return;
  event.preventDefault();
  field.focus();
  field.select();
});

const view = document.getElementById("tape");
if (view) begin(view);
