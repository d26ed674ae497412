// What was written here and is not accepted yet, kept in the tab: a reload or a crash loses nothing.
// Rule 1: an item keeps its id for ever: said again, the bot knows it and does not hear it twice.
// Rule 2: an item leaves when the bot accepted it, or when the person takes it back.

/** A person's value in this tab's storage; it works, and forgets, where there is no storage. */
export class Kept {
  constructor(name) {
    this.name = name;
  }

  get(otherwise) {
    try {
      return JSON.parse(sessionStorage.getItem(this.name)) ?? otherwise;
    } catch {
      return otherwise;
    }
  }

  set(value) {
    try {
      sessionStorage.setItem(this.name, JSON.stringify(value));
    } catch {
      // Full or forbidden: the page itself still has it.
    }
  }
}

export class Outbox {
  /** Take up what this visitor's tab had not sent. */
  constructor(session) {
    this.kept = new Kept(`tapebot.outbox.${session}`);
    this.items = this.kept.get([]);
  }

  /** What is still to be sent, in order. */
  get waiting() {
    return this.items.filter((one) => !one.refused);
  }

  has(id) {
    return this.items.some((one) => one.id === id);
  }

  get(id) {
    return this.items.find((one) => one.id === id);
  }

  /** Keep an item, `{type: "say", text, files}` or `{type: "press", command, message}`; returns it with its id. */
  add(item) {
    const made = { ...item, id: crypto.randomUUID(), at: new Date().toISOString() };
    this.items.push(made);
    this.kept.set(this.items);
    return made;
  }

  refuse(id, text) {
    const item = this.get(id);
    if (item) item.refused = text;
    this.kept.set(this.items);
  }

  drop(id) {
    this.items = this.items.filter((one) => one.id !== id);
    this.kept.set(this.items);
  }
}

/** An item as the socket carries it. */
export function frame(item) {
  const { type, id } = item;
  if (type === "press") return { type, id, command: item.command, message: item.message };
  return { type, id, text: item.text, files: item.files.map((one) => one.id) };
}
