// Files on their way with a message: chosen, dropped or pasted; sent to the bot at once, a few at a time.

import { _, number } from "./language.js";
import { csrf, el, toast } from "./site.js";
import { bytes } from "./chat-row.js";

const AT_ONCE = 3;
const MOST = 10;
const OLD = 8 * 60_000; // Milliseconds after which one is sent anew: the bot keeps them for ten minutes.

export class Files {
  /** @param left The button that was pressed is gone: where the focus goes. */
  constructor(list, changed, left) {
    this.list = list;
    this.changed = changed;
    this.left = left;
    this.items = [];
    this.most = 0; // Bytes; 0 where unknown.
    this.previews = new Map(); // id → address of what is in this tab, for rows that wait
  }

  get isPending() {
    return this.items.some((one) => one.state === "waiting" || one.state === "sending");
  }

  get isFailed() {
    return this.items.some((one) => one.state === "failed");
  }

  add(files) {
    for (const file of files) {
      const why = this.refusal(file);
      if (why) toast(why, "bad");
      else this.take(file);
    }
    this.next();
  }

  refusal(file) {
    const { name } = file;
    if (this.items.length >= MOST) {
      return _("“{name}” was not added: a message can have at most {most} files.", { name, most: number(MOST) });
    }
    if (this.most && file.size > this.most) {
      const sizes = { size: bytes(file.size), limit: bytes(this.most) };
      return _("“{name}” is too large ({size}); the limit is {limit}.", { name, ...sizes });
    }
    return file.size ? null : _("“{name}” is empty, or a folder.", { name });
  }

  take(file) {
    const item = { file, state: "waiting", id: null, at: 0, request: null };
    const isImage = /^image\/(png|jpeg|gif|webp)$/.test(file.type);
    item.preview = isImage ? URL.createObjectURL(file) : null;
    item.bar = el("progress", { max: "1", value: "0", "aria-label": _("Sending {name}", { name: file.name }) });
    item.note = el("span", { class: "muted" }, bytes(file.size));
    item.element = el(
      "li",
      { class: "chat-file" },
      item.preview ? el("img", { src: item.preview, alt: "" }) : null,
      el("span", { class: "chat-file-name" }, el("bdi", {}, file.name), item.note, item.bar),
      el(
        "button",
        { class: "button quiet", type: "button", "aria-label": _("Remove {name}", { name: file.name }), onclick: () => this.remove(item) },
        "✕",
      ),
    );
    this.items.push(item);
    this.list.append(item.element);
    this.list.hidden = false;
    this.changed();
  }

  remove(item) {
    item.request?.abort();
    if (item.preview) URL.revokeObjectURL(item.preview);
    const hadFocus = item.element.contains(document.activeElement);
    item.element.remove();
    this.items = this.items.filter((one) => one !== item);
    this.list.hidden = !this.items.length;
    if (hadFocus) this.left();
    this.next();
    this.changed();
  }

  next() {
    const sending = this.items.filter((one) => one.state === "sending").length;
    for (const item of this.items.filter((one) => one.state === "waiting").slice(0, Math.max(0, AT_ONCE - sending))) {
      this.send(item);
    }
  }

  send(item) {
    const request = new XMLHttpRequest(); // It alone tells of progress.
    item.request = request;
    item.state = "sending";
    request.open("POST", `/chat/uploads?name=${encodeURIComponent(item.file.name || "file")}`);
    request.setRequestHeader("X-CSRF-Token", csrf());
    request.setRequestHeader("Content-Type", item.file.type || "application/octet-stream");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) item.bar.value = event.loaded / event.total;
    });
    request.addEventListener("load", () => {
      if (request.status < 300 && request.response?.id) this.done(item, request.response);
      else this.fail(item, request.response?.detail ?? _("the bot answered with the error {status}", { status: request.status }));
    });
    request.addEventListener("error", () => this.fail(item, _("the bot cannot be reached")));
    request.send(item.file);
  }

  done(item, { id, name, kind }) {
    Object.assign(item, { id, name, kind, state: "done", at: Date.now() });
    item.bar.hidden = true;
    item.note.textContent = bytes(item.file.size);
    if (item.preview) this.previews.set(id, item.preview);
    this.next();
    this.changed();
  }

  fail(item, why) {
    item.state = "failed";
    item.bar.hidden = true;
    const again = el("button", { class: "button quiet", type: "button" }, _("Try again"));
    again.addEventListener("click", () => {
      this.retry(item);
      this.left();
    });
    item.note.replaceChildren(_("Not sent: {reason}.", { reason: why }), " ", again);
    this.next();
    this.changed();
  }

  retry(item) {
    item.state = "waiting";
    item.bar.hidden = false;
    item.bar.value = 0;
    item.note.textContent = bytes(item.file.size);
    this.next();
    this.changed();
  }

  /** Send anew what the bot may have let go; true where there was such. */
  refresh() {
    const old = this.items.filter((one) => one.state === "done" && Date.now() - one.at > OLD);
    for (const item of old) this.retry(item);
    return old.length > 0;
  }

  /** Hand over what was sent, for a message; the list is empty then. */
  handOver() {
    const sent = this.items.map(({ id, name, kind }) => ({ id, name, kind }));
    this.items = [];
    this.list.replaceChildren();
    this.list.hidden = true;
    return sent;
  }
}
