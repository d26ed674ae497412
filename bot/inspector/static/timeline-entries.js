// A tape's entries, fetched in windows of ids; the newest windows used are kept.
import { api } from "./site.js";

const WIDE = 200; // Ids of a window.
const KEPT = 40; // Windows.
const AGAIN = 3000; // Milliseconds until something that failed is tried again.
const BURST = 60; // Requests at once, and then so many a second: the site refuses many more.
const STEADY = 6;
const SPARE = 20; // So many are left for what is in view.

/** How many requests may be made now: a bucket that fills slowly. */
class Allowance {
  constructor() {
    this.left = BURST;
    this.since = performance.now();
  }

  get now() {
    const now = performance.now();
    this.left = Math.min(BURST, this.left + ((now - this.since) / 1000) * STEADY);
    this.since = now;
    return this.left;
  }

  async take() {
    while (this.now < 1) await new Promise((later) => setTimeout(later, 1000 / STEADY));
    this.left -= 1;
  }
}

export class Entries {
  /** `tape`, the ids of its first and last entry, and what to do when some came. */
  constructor(tape, first, version, came) {
    this.tape = tape;
    this.first = first;
    this.version = version;
    this.came = came;
    this.windows = new Map(); // By number: {entries by id, upto}.
    this.wanted = [];
    this.fetching = false;
    this.allowance = new Allowance();
  }

  /** The entry of an id; null where there is none, undefined where that is not known yet. */
  get(id) {
    const found = this.windows.get(window_of(id));
    if (!found || id > found.upto) return undefined;
    return found.entries.get(id) ?? null;
  }

  /** See that these are there soon, and what is beside them after that. */
  want(first, last) {
    const numbers = [];
    for (let one = window_of(first); one <= window_of(last); one++) numbers.push(one);
    if (this.allowance.now > SPARE) numbers.push(numbers.at(-1) + 1, numbers[0] - 1);
    // What was wanted before is not looked at any more.
    this.wanted = numbers;
    for (const one of numbers) {
      const found = this.windows.get(one);
      if (!found) continue;
      this.windows.delete(one);
      this.windows.set(one, found);
    }
    if (!this.fetching) this.fetch();
  }

  async fetch() {
    this.fetching = true;
    try {
      while (this.wanted.some((one) => this.lacks(one))) {
        await this.allowance.take();
        // Meanwhile something else may be in view.
        const next = this.wanted.find((one) => this.lacks(one));
        if (next !== undefined) await this.read(next);
      }
    } catch {
      setTimeout(() => this.fetch(), AGAIN);
      return;
    } finally {
      this.fetching = false;
    }
  }

  lacks(number) {
    const last = Math.min((number + 1) * WIDE, this.version);
    const begins = Math.max(number * WIDE + 1, this.first);
    return begins <= last && (this.windows.get(number)?.upto ?? 0) < last;
  }

  async read(number) {
    const first = number * WIDE + 1;
    const last = Math.min(first + WIDE - 1, this.version);
    const flushed = this.windows;
    const answer = await api("/entries", { tape: this.tape, first, last });
    // Something was erased meanwhile: what came may be of before.
    if (flushed !== this.windows) return;
    this.windows.set(number, { entries: new Map(answer.entries.map((one) => [one.id, one])), upto: last });
    while (this.windows.size > KEPT) this.windows.delete(this.windows.keys().next().value);
    this.came(answer.version);
  }

  /** Take in what came behind the last entry. */
  add(entries, version) {
    for (const one of entries) {
      const found = this.windows.get(window_of(one.id));
      // A hole before it must be read.
      if (!found || found.upto < Math.min(one.id - 1, this.version)) continue;
      found.entries.set(one.id, one);
      found.upto = one.id;
    }
    this.version = Math.max(this.version, version);
    // A command may have erased words.
    if (entries.some((one) => one.name === "reply" || one.name.startsWith("memory."))) this.flush();
  }

  /** Forget everything: words were erased. */
  flush() {
    this.windows = new Map();
  }
}

function window_of(id) {
  return Math.floor((id - 1) / WIDE);
}
