// One message as an element. What is in it may be hostile: text is text, and the only HTML is our server's.

import { _, locale } from "./language.js";
import { el, rendered, toast, when } from "./site.js";

const CLOCK = { hour: "2-digit", minute: "2-digit" };

/** Return a line's element; `did` has press(line, command, button), again(id) and back(id). */
export function rowOf(line, me, did) {
  const row = el("article", { class: `chat-row ${line.author}`, dataset: { id: line.id }, tabindex: "-1" });
  row.append(
    header(line, me),
    el("div", { class: "chat-body" }, body(line), attachments(line.attachments), files(line.files)),
    buttons(line, did),
  );
  return row;
}

/** Return the element of an answer that is being written. */
export function growingRow(stream) {
  const row = el("article", { class: "chat-row bot growing", dataset: { stream } });
  const text = rendered("");
  text.dir = "auto";
  row.append(header({ author: "bot", at: new Date().toISOString() }, ""), el("div", { class: "chat-body" }, text));
  return row;
}

/** Let a growing answer hold this HTML; what was there already stays, and what is selected in it. */
export function grow(row, html) {
  const text = row.querySelector(".markdown");
  const made = rendered(html);
  let same = 0;
  while (text.childNodes[same] && made.childNodes[same] && text.childNodes[same].isEqualNode(made.childNodes[same])) {
    same += 1;
  }
  while (text.childNodes.length > same) text.lastChild.remove();
  text.append(...[...made.childNodes].slice(same));
}

/** Say below a row how its sending stands: `state` is a text, `refused` gives ways to go on. */
export function mark(row, state, refused, did) {
  row.querySelector(".chat-sending")?.remove();
  row.classList.toggle("refused", refused);
  if (!state) return;
  const { id } = row.dataset;
  const made = el("p", { class: "chat-sending" }, state);
  if (refused) {
    made.append(
      el("button", { class: "button quiet", type: "button", onclick: () => did.again(id) }, _("Send again")),
      el("button", { class: "button quiet", type: "button", onclick: () => did.back(id) }, _("Edit")),
    );
  }
  row.append(made);
}

function header(line, me) {
  const who = { bot: "tapebot", notice: _("Notice") }[line.author] ?? (!line.name || line.name === me ? _("You") : line.name);
  return el(
    "header",
    { class: "chat-head" },
    el("bdi", { class: "chat-who" }, who),
    el("time", { datetime: line.at, title: when(line.at) }, when(line.at, CLOCK)),
  );
}

function body(line) {
  if (line.html === null || line.html === undefined) {
    return line.text ? el("div", { class: "chat-text", dir: "auto" }, line.text) : null;
  }
  const text = rendered(line.html);
  text.dir = "auto";
  for (const pre of text.querySelectorAll("pre")) {
    const copy = el("button", { class: "button quiet chat-copy", type: "button" }, _("Copy"));
    copy.addEventListener("click", () => copied(pre.textContent, copy));
    const place = el("div", { class: "chat-code" });
    pre.replaceWith(place);
    place.append(pre, copy);
  }
  for (const table of text.querySelectorAll("table")) {
    const place = el("div", { class: "chat-table", tabindex: "0", role: "region", "aria-label": _("Table") });
    table.replaceWith(place);
    place.append(table);
  }
  return text;
}

async function copied(text, button) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = _("Copied");
    setTimeout(() => (button.textContent = _("Copy")), 2000);
  } catch {
    toast(_("The browser does not allow copying; select the text and copy it."), "bad");
  }
}

function attachments(list = []) {
  if (!list.length) return null;
  const shown = list.map((one) => el("li", {}, attachment(one)));
  return el("ul", { class: "chat-attachments", "aria-label": _("Files") }, shown);
}

function attachment({ kind, name, url, note }) {
  const address = ours(url);
  const parts = [];
  if (kind === "image" && address) {
    const image = el("img", { src: address, alt: name, decoding: "async" });
    parts.push(el("a", { href: address, target: "_blank", rel: "noopener" }, image));
  } else {
    const label = el("bdi", {}, name || kind);
    parts.push(address ? el("a", { href: address, download: name }, label) : label);
  }
  if (note) parts.push(el("span", { class: "muted" }, " ", el("bdi", {}, note)));
  return parts;
}

function files(list = []) {
  if (!list.length) return null;
  const shown = list.map(({ name, url, size }) => {
    const label = el("bdi", {}, name);
    const address = ours(url);
    const link = address ? el("a", { href: address, download: name }, label) : label;
    return el("li", {}, link, size ? el("span", { class: "muted" }, ` ${bytes(size)}`) : null);
  });
  return el("ul", { class: "chat-downloads", "aria-label": _("Files") }, shown);
}

function buttons(line, did) {
  if (!line.buttons?.length) return "";
  const made = line.buttons.map(({ label, command }) => {
    const onclick = (event) => did.press(line, command, event.currentTarget);
    return el("button", { class: "button", type: "button", onclick }, label);
  });
  return el("div", { class: "chat-buttons", role: "group", "aria-label": _("Answers to choose") }, made);
}

/** An address on this site, or of what this tab holds; nothing else is ever loaded or linked. */
function ours(url) {
  if (!url) return null;
  const address = new URL(url, location.href);
  const same = address.origin === location.origin && ["http:", "https:", "blob:"].includes(address.protocol);
  return same ? address.href : null;
}

/** A size as people tell it. */
export function bytes(size) {
  const [unit, by, digits] = size < 1000 ? ["byte", 1, 0] : size < 1e6 ? ["kilobyte", 1e3, 0] : ["megabyte", 1e6, 1];
  const unitDisplay = by === 1 ? "long" : "short"; // "70 bytes", not "70 byte".
  const style = { style: "unit", unit, unitDisplay, maximumFractionDigits: digits };
  return new Intl.NumberFormat(locale, style).format(size / by);
}
