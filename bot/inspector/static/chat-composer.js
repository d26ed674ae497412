// The box that messages are written in: keys, drafts, files that are dropped or pasted.

import { _, number } from "./language.js";
import { toast } from "./site.js";
import { Kept } from "./chat-outbox.js";

const MOST = 32_000; // Characters of a message.

export class Composer {
  constructor({ form, text, send, completion, files, session, say }) {
    Object.assign(this, { form, text, send, completion, files, say });
    this.draft = new Kept(`tapebot.draft.${session}`);
    this.pending = document.getElementById("chat-pending");
    this.isWanted = false; // To be sent once the files are there.
    text.value = this.draft.get("");
    text.addEventListener("input", () => this.edited());
    text.addEventListener("keydown", (event) => this.key(event));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.submit();
    });
    this.takeFiles();
    this.edited();
    // On a phone the keyboard would cover what was said last.
    if (matchMedia("(hover: hover)").matches) text.focus();
  }

  key(event) {
    if (this.completion.key(event)) return;
    // 229: what some browsers tell of the Enter that ends a composition.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
    event.preventDefault();
    this.submit();
  }

  /** Keep the draft, and let the box be as tall as its text. */
  edited() {
    this.draft.set(this.text.value);
    this.text.style.blockSize = "auto";
    this.text.style.blockSize = `${this.text.scrollHeight + this.text.offsetHeight - this.text.clientHeight}px`;
    this.changed();
  }

  /** The files or the text are others. */
  changed() {
    const isEmpty = !this.text.value.trim() && !this.files.items.length;
    this.send.setAttribute("aria-disabled", String(isEmpty || this.isEnded === true));
    if (this.files.isFailed || isEmpty) this.isWanted = false;
    this.send.setAttribute("aria-busy", String(this.isWanted));
    this.pending.textContent = this.isWanted ? _("This will be sent when the files are uploaded.") : "";
    if (this.isWanted && !this.files.isPending) this.submit();
  }

  submit() {
    const text = this.text.value.trim();
    const length = [...text].length;
    this.isWanted = false;
    if (this.isEnded || (!text && !this.files.items.length)) return;
    if (length > MOST) {
      const values = { count: number(length), most: number(MOST) };
      toast(_("This message has {count} characters; at most {most} are allowed. Send it in parts, or as a file.", values), "bad");
      return;
    }
    if (this.files.isFailed) {
      toast(_("A file was not uploaded: try again, or remove it."), "bad");
      return;
    }
    if (this.files.refresh() || this.files.isPending) {
      this.isWanted = true;
      this.changed();
      return;
    }
    const sent = this.files.handOver();
    this.text.value = "";
    this.completion.close();
    this.edited();
    this.say(text, sent);
    this.text.focus();
  }

  /** Let the person go on with this text. */
  take(text) {
    this.text.value = this.text.value ? `${this.text.value}\n${text}` : text;
    this.edited();
    this.text.focus();
  }

  /** Nothing can be sent any more; what is written stays. */
  end(isEnded) {
    this.isEnded = isEnded;
    this.changed();
  }

  takeFiles() {
    const picker = document.getElementById("chat-picker");
    const veil = document.getElementById("chat-drop");
    document.getElementById("chat-attach").addEventListener("click", () => picker.click());
    picker.addEventListener("change", () => {
      this.files.add([...picker.files]);
      picker.value = "";
      this.text.focus();
    });
    this.text.addEventListener("paste", (event) => {
      const pasted = [...event.clipboardData.files];
      if (!pasted.length) return;
      event.preventDefault();
      this.files.add(pasted);
    });
    let depth = 0; // Of elements that are entered and not left.
    const carries = (event) => event.dataTransfer?.types.includes("Files");
    addEventListener("dragenter", (event) => {
      if (!carries(event)) return;
      depth += 1;
      veil.hidden = false;
    });
    addEventListener("dragleave", (event) => {
      if (!carries(event)) return;
      depth -= 1;
      veil.hidden = depth > 0 ? veil.hidden : true;
    });
    addEventListener("dragover", (event) => carries(event) && event.preventDefault());
    addEventListener("drop", (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      depth = 0;
      veil.hidden = true;
      this.files.add([...event.dataTransfer.files]);
      this.text.focus();
    });
  }
}
