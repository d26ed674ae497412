// Completion of commands: a list above the message, worked with the arrows while the focus stays in the text.

import { el } from "./site.js";

const PLACE = /^[A-Z]{1,}$|[[<(…]/; // Words of a form that stand for the person's own.

export class Completion {
  constructor(text, list, changed) {
    this.text = text;
    this.list = list;
    this.changed = changed;
    this.commands = [];
    this.options = [];
    this.chosen = -1;
    this.isTyped = false;
    text.addEventListener("input", () => {
      this.isTyped = true;
      this.look();
    });
    text.addEventListener("blur", () => this.close());
    list.addEventListener("pointerdown", (event) => event.preventDefault()); // The focus stays.
    list.addEventListener("click", (event) => {
      const at = [...list.children].indexOf(event.target.closest("[role=option]"));
      if (at >= 0) this.take(at);
    });
  }

  get isOpen() {
    return !this.list.hidden;
  }

  /** Take the commands there are; what was typed before they were known is completed now. */
  know(commands) {
    const isFirst = !this.commands.length;
    this.commands = commands;
    if (isFirst && this.isTyped && document.activeElement === this.text) this.look();
  }

  /** Show what the text may become. */
  look() {
    const { value, selectionStart } = this.text;
    const fits = value.startsWith("/") && !value.includes("\n") && selectionStart === value.length;
    this.options = fits ? optionsFor(value, this.commands) : [];
    if (!this.options.length) return this.close();
    this.list.replaceChildren(...this.options.map(shown));
    this.list.hidden = false;
    // Only while there is a list: a message's box is no combobox otherwise.
    this.text.setAttribute("role", "combobox");
    this.text.setAttribute("aria-autocomplete", "list");
    this.text.setAttribute("aria-expanded", "true");
    this.text.setAttribute("aria-controls", this.list.id);
    this.choose(this.options[0].eager ? 0 : -1);
    return undefined;
  }

  close() {
    this.options = [];
    this.chosen = -1;
    this.list.hidden = true;
    for (const name of ["role", "aria-autocomplete", "aria-expanded", "aria-controls", "aria-activedescendant"]) {
      this.text.removeAttribute(name);
    }
  }

  /** Take a key; true where it was meant for the list. */
  key(event) {
    if (!this.isOpen || event.isComposing) return false;
    const count = this.options.length;
    const { key } = event;
    if (key === "ArrowDown") this.choose((this.chosen + 1) % count);
    else if (key === "ArrowUp") this.choose(this.chosen <= 0 ? count - 1 : this.chosen - 1);
    else if (key === "Escape") this.close();
    else if (key === "Tab" && !event.shiftKey) this.take(Math.max(0, this.chosen));
    else if (key === "Enter" && !event.shiftKey && this.isChange()) this.take(this.chosen);
    else return false;
    event.preventDefault();
    return true;
  }

  isChange() {
    return this.chosen >= 0 && this.options[this.chosen].text.trimEnd() !== this.text.value.trimEnd();
  }

  choose(at) {
    this.chosen = at;
    [...this.list.children].forEach((one, index) => one.setAttribute("aria-selected", String(index === this.chosen)));
    const chosen = this.list.children[this.chosen];
    if (!chosen) return this.text.removeAttribute("aria-activedescendant");
    this.text.setAttribute("aria-activedescendant", chosen.id);
    return chosen.scrollIntoView({ block: "nearest" });
  }

  take(at) {
    this.text.value = this.options[at].text;
    this.text.focus();
    this.changed();
    this.look();
  }
}

function shown(option, index) {
  const props = { role: "option", id: `chat-option-${index}`, "aria-selected": "false" };
  return el("li", props, el("span", { class: "mono" }, option.label), el("span", { class: "muted" }, option.line));
}

/** What a text that begins with a slash may become. Pure. */
function optionsFor(value, commands) {
  const [, name, rest] = /^\/(\S*)(?:\s+(.*))?$/s.exec(value) ?? [];
  if (name === undefined) return [];
  if (rest === undefined && !/\s$/.test(value)) {
    return commands
      .filter((one) => one.name.startsWith(name.toLowerCase()))
      .map((one) => ({
        text: `/${one.name}${one.forms.length ? " " : ""}`,
        label: `/${one.name}`,
        line: plain(one.summary),
        eager: true,
      }));
  }
  const command = commands.find((one) => one.name === name.toLowerCase());
  const typed = (rest ?? "").toLowerCase();
  return (command?.forms ?? [])
    .map(([form, line]) => ({ form, line: plain(line), head: head(form) }))
    .filter(({ head: text }) => text.startsWith(typed))
    .map(({ form, line, head: text }) => ({
      text: `/${command.name} ${text}${text && text !== form ? " " : ""}`,
      label: `/${command.name} ${form}`,
      line,
      eager: typed !== "" && text !== typed,
    }));
}

/** A form's own words, before those that the person fills in. */
function head(form) {
  const words = form.split(" ");
  const end = words.findIndex((one) => PLACE.test(one));
  return (end < 0 ? words : words.slice(0, end)).join(" ");
}

function plain(line) {
  return line.replaceAll("`", "");
}
