// What is told beside the conversation: how the connection stands, what the bot does, and what was not seen.

import { _, ngettext } from "./language.js";
import { el } from "./site.js";

const SOON = 800; // Milliseconds that a connection may take before anything is said of it.

export class State {
  constructor({ line, activity, stop }) {
    Object.assign(this, { line, activity, stop });
    this.isCaughtUp = false; // Whether all lines there are have come on this connection.
    this.isIdle = true;
    this.isWriting = false;
    this.count = 0;
    this.title = document.title;
    document.addEventListener("visibilitychange", () => document.hidden || this.seen());
    addEventListener("focus", () => this.seen());
  }

  /** Tell how the connection stands, and how many messages wait for it. */
  connection(state, text, waiting) {
    clearTimeout(this.timer);
    const kept = waiting ? " " + ngettext("{n} message waits to be sent.", "{n} messages wait to be sent.", waiting) : "";
    this.line.classList.toggle("bad", state === "ended");
    if (state !== "open") this.act("idle");
    if (state === "open") this.line.replaceChildren();
    else if (state === "opening" && !this.line.textContent) {
      this.timer = setTimeout(() => this.line.replaceChildren(_("Connecting…") + kept), SOON);
    } else if (state === "opening" || state === "waiting") this.line.replaceChildren((text || _("Reconnecting…")) + kept);
    else if (state === "offline") this.line.replaceChildren(_("You are offline.") + kept);
    else if (state === "ended") {
      const link = el("a", { href: "/login?next=/" }, _("Log in again"));
      this.line.replaceChildren((text || _("Your login has ended.")) + kept, " ", link);
    }
  }

  /** Tell what the bot does. */
  act(what, detail = "") {
    this.isIdle = what === "idle";
    if (this.isIdle) this.isWriting = false;
    if (what === "tool") this.show(detail ? _("Using {tool}…", { tool: detail.replaceAll("_", " ") }) : _("Using a tool…"));
    else this.show(what === "waiting" ? _("Waiting: many chats ask the model at once…") : _("Thinking…"));
  }

  writing(isWriting) {
    this.isWriting = isWriting;
    this.show(_("Writing…"));
  }

  show(text) {
    const isBusy = !this.isIdle || this.isWriting;
    const next = isBusy ? text : "";
    if (this.activity.textContent !== next) this.activity.textContent = next;
    this.stop.hidden = !isBusy;
  }

  /** Count answers that came while nobody looked. */
  unseen(count) {
    if (!document.hidden && document.hasFocus()) return;
    this.count += count;
    if (this.count) document.title = `(${this.count}) ● ${this.title}`;
  }

  seen() {
    this.count = 0;
    document.title = this.title;
  }
}
