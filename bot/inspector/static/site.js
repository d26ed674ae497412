// What all pages share: the API, elements, toasts, dialogs, and buttons that give commands.
// Rule 1: what comes from a tape is text (textContent); the only HTML is what our server's markdown() made.
// Rule 2: this file may be loaded twice, with and without a version in its address: it starts once.

import { _, locale } from "./language.js";

const FAILED = _("The bot cannot be reached. Is it running?");
const SHOWN_FOR = 7000; // Milliseconds that a toast stays.
const SAFE = new Set(["http:", "https:", "mailto:", "blob:"]);

/** An answer of the API that is an error; its message is for people. */
class ApiError extends Error {
  constructor(status, code, detail) {
    super(detail);
    this.status = status;
    this.code = code;
  }
}

/** Get JSON: `api("/problems", {tape})` or a whole path. `signal` (AbortSignal) ends it early. */
export function api(path, params = {}, { signal } = {}) {
  const url = new URL(full(path), location.origin);
  for (const [name, value] of Object.entries(params)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") url.searchParams.append(name, one);
    }
  }
  return told(url, { signal });
}

/** Post JSON with the login's CSRF token, and return the answer's JSON. */
export function post(path, body = {}, { signal } = {}) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": csrf() };
  return told(full(path), { method: "POST", headers, body: JSON.stringify(body), signal });
}

/** The token that every change brings. */
export function csrf() {
  return document.querySelector('meta[name="csrf"]')?.content ?? "";
}

function full(path) {
  return path.startsWith("/api/") ? path : `/api/v1${path}`;
}

async function told(url, request) {
  let response;
  try {
    response = await fetch(url, {
      ...request,
      headers: { Accept: "application/json", ...request.headers },
      credentials: "same-origin",
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", FAILED);
  }
  if (response.status === 401) {
    location.assign(`/login?${new URLSearchParams({ next: location.pathname + location.search })}`);
    throw new ApiError(401, "login", _("You are no longer logged in."));
  }
  const json = await response.json().catch(() => null);
  if (response.ok && json !== null) return json;
  const detail = json?.detail ?? _("The bot answered with the error {status}.", { status: response.status });
  throw new ApiError(response.status, json?.error ?? "unknown", capital(String(detail)));
}

function capital(text) {
  return text && text[0].toUpperCase() + text.slice(1);
}

/**
 * Make an element: `el("a", {href, class: "button", dataset: {n: 1}, onclick: f}, "text", child)`.
 * Children are nodes, texts, numbers, lists of them, or nothing (null, undefined, false).
 */
export function el(tag, props = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "dataset") Object.assign(made.dataset, value);
    else if (name.startsWith("on")) {
      // The text of a handler would be a script.
      if (typeof value === "function") made.addEventListener(name.slice(2), value);
    } else if (name === "value" && "value" in made) made.value = value;
    else if ((name === "href" || name === "src") && !isSafe(value)) continue;
    else if (!["style", "srcdoc", "innerHTML"].includes(name)) {
      made.setAttribute(name, value === true ? "" : value);
    }
  }
  made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return made;
}

function isSafe(address) {
  try {
    return SAFE.has(new URL(address, location.href).protocol);
  } catch {
    return false;
  }
}

/** An element with HTML that our server's markdown() made; of nothing else. */
export function rendered(html) {
  const made = el("div", { class: "markdown" });
  made.innerHTML = html;
  // Headings of a message stand below those of the page.
  for (const one of made.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    one.setAttribute("aria-level", Math.min(Number(one.localName[1]) + 2, 6));
  }
  return made;
}

/** Tell something in passing; of kind "bad" at once. */
export function toast(text, kind = "") {
  const place = document.getElementById("toasts");
  const made = el("div", { class: `toast ${kind}`, role: kind === "bad" ? "alert" : null }, text);
  place.append(made);
  raise(place);
  setTimeout(() => {
    made.remove();
    if (!place.childElementCount && place.matches(":popover-open")) place.hidePopover();
  }, SHOWN_FOR);
}

// Only what is in the top layer is seen while a dialog is open, and the last one there is on top.
function raise(place) {
  if (!place.showPopover) return;
  if (place.matches(":popover-open")) place.hidePopover();
  place.showPopover();
}

/** A time as people here tell it: `when("2026-11-22T10:00:00Z")`. */
export function when(iso, options = { dateStyle: "medium", timeStyle: "short" }) {
  const moment = new Date(iso);
  return Number.isNaN(moment.valueOf()) ? String(iso) : new Intl.DateTimeFormat(locale, options).format(moment);
}

/** Show the times below an element (`<time datetime data-local>`) in this browser's zone. */
export function localTimes(root = document) {
  for (const one of root.querySelectorAll("time[data-local]")) {
    one.title = one.dateTime;
    one.textContent = when(one.dateTime, one.dataset.local === "date" ? { dateStyle: "medium" } : undefined);
    delete one.dataset.local;
  }
  // In a list to choose from there is only text.
  for (const one of root.querySelectorAll("option[data-at]")) {
    one.textContent = `${one.dataset.label}, ${when(one.dataset.at, { dateStyle: "short", timeStyle: "short" })}`;
  }
}

/** Tell in a note that all is read by now; where nobody began to read, show the page anew at once. */
export function allRead(note, told, label) {
  note.replaceChildren(told, " ", el("a", { href: location.href }, label));
  if (!scrollY && document.activeElement === document.body) location.reload();
}

/** Let what scrolls by itself, such as tables that are too wide, be scrolled by keys, too. */
function scrollable(root = document) {
  for (const one of root.querySelectorAll(":is(.table-wrap, .words):not([tabindex])")) {
    if (one.scrollWidth <= one.clientWidth && one.scrollHeight <= one.clientHeight) continue;
    const name = one.querySelector("caption")?.textContent.trim() || (one.matches(".words") ? _("Words") : _("Table"));
    one.setAttribute("tabindex", "0");
    // Of many texts not each is a landmark.
    one.setAttribute("role", one.matches(".words") ? "group" : "region");
    one.setAttribute("aria-label", name);
  }
}

/**
 * Open a dialog, and return it: `sheet("Title", body, {buttons, onclose})`. Esc and a click beside it close it;
 * it leaves the page when it closes, and the focus goes `back` to where it was.
 */
export function sheet(title, body, { buttons = [], onclose = null, back = document.activeElement } = {}) {
  const heading = el("h2", { id: `sheet-${Math.random().toString(36).slice(2)}` }, title);
  const close = el("button", { class: "button quiet", type: "button", "aria-label": _("Close") }, "✕");
  const made = el(
    "dialog",
    { class: "sheet", "aria-labelledby": heading.id },
    el("div", { class: "sheet-head" }, heading, close),
    el("div", { class: "sheet-body", tabindex: "0", autofocus: true }, body),
    el("div", { class: "sheet-foot" }, buttons),
  );
  close.addEventListener("click", () => made.close());
  // Begun beside it, too: who marks text and lets go outside wants to go on reading.
  let begun = null;
  made.addEventListener("pointerdown", (event) => (begun = event.target));
  made.addEventListener("click", (event) => {
    if (event.target === made && begun === made) made.close();
  });
  made.addEventListener("close", () => {
    made.remove();
    if (back?.isConnected) back.focus();
    onclose?.();
  });
  document.body.append(made);
  made.showModal();
  localTimes(made);
  return made;
}

/** Ask for a text; a promise of it, or of null where nothing was given. */
export function ask(question, given = "") {
  return new Promise((resolve) => {
    let answer = null;
    const field = el("textarea", { id: "asked", rows: "3", dir: "auto", autofocus: true, required: true, value: given });
    const form = el(
      "form",
      { id: "asking", method: "dialog", class: "stack tight" },
      el("label", { for: "asked" }, question),
      field,
      el("p", { class: "muted small" }, _("Enter sends, Shift+Enter starts a new line.")),
    );
    const send = el("button", { class: "button primary", form: "asking" }, _("Send"));
    form.addEventListener("submit", () => (answer = field.value.trim() || null));
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    sheet(_("One more thing"), form, { buttons: [send], onclose: () => resolve(answer) });
    field.focus();
    field.select();
  });
}

/** Ask whether to go on; a promise of true or false. */
export function confirmed(question, label = _("Continue")) {
  return new Promise((resolve) => {
    let answer = false;
    const yes = el("button", { class: "button danger", type: "button" }, label);
    const made = sheet(_("Are you sure?"), el("p", {}, question), { buttons: [yes], onclose: () => resolve(answer) });
    yes.addEventListener("click", () => {
      answer = true;
      made.close();
    });
  });
}

/**
 * Give a command in a conversation and show what it answers, in a dialog whose buttons give commands, too.
 * When that closes, `tapebot:changed` is fired on document ({detail: {session}}): who calls preventDefault() on it
 * shows the change itself, else the page is loaded anew.
 */
export async function command(session, text, { pressed = null, back = document.activeElement } = {}) {
  const answer = await post("/commands", { session, text, ...(pressed ? { pressed } : {}) });
  // A button of the dialog takes this answer's place by the next one.
  const state = { next: false };
  const buttons = answer.buttons.map((one) => {
    const made = el("button", { class: "button", type: "button" }, one.label);
    made.addEventListener("click", () =>
      busy(made, async () => {
        await command(session, one.command, { pressed: answer.id, back });
        state.next = true;
        made.closest("dialog").close();
      }),
    );
    return made;
  });
  const files = answer.files.map((one) => el("li", {}, el("a", { href: one.url, download: one.name }, one.name)));
  const body = el(
    "div",
    { class: "stack", lang: "", dir: "auto" },
    answer.html ? rendered(answer.html) : el("p", {}, _("Done.")),
    files.length ? el("ul", { "aria-label": _("Files") }, files) : null,
  );
  sheet(text.split(/\s+/).slice(0, 2).join(" "), body, {
    buttons,
    back,
    onclose: () => {
      if (!state.next) changed(session);
    },
  });
  return answer;
}

function changed(session) {
  const event = new CustomEvent("tapebot:changed", { cancelable: true, detail: { session } });
  if (!document.dispatchEvent(event)) return;
  const button = document.activeElement ?? document.body;
  const around = button.closest("section[aria-labelledby], article[id]");
  const place = around?.getAttribute("aria-labelledby") ?? around?.id;
  history.replaceState({ back: { label: button.closest("[data-command]")?.textContent, place } }, "");
  location.reload();
}

/** Go on where a command was given before the page was loaded anew; where its button is gone, at what it was in. */
function goOn() {
  const { back } = history.state ?? {};
  if (!back) return;
  history.replaceState(null, "");
  const button = [...document.querySelectorAll("button[data-command]")].find((one) => one.textContent === back.label);
  const place = button ?? document.getElementById(back.place) ?? document.getElementById("main");
  if (!button) place.setAttribute("tabindex", "-1");
  place.focus({ preventScroll: true });
}

/** Do something for a button: once at a time, and with errors told; a promise of whether it was done. */
export async function busy(button, doing) {
  if (button.getAttribute("aria-busy") === "true") return false;
  button.setAttribute("aria-busy", "true");
  try {
    await doing();
    return true;
  } catch (error) {
    toast(error instanceof ApiError ? error.message : _("That did not work: {reason}", { reason: error.message }), "bad");
    if (!(error instanceof ApiError)) console.warn(error);
    return false;
  } finally {
    button.removeAttribute("aria-busy");
  }
}

async function pressed(button) {
  let { session, command: text, prompt: question, value, confirm: doubt, pressed: of } = button.dataset;
  let given = null;
  if (question !== undefined) {
    given = await ask(question, value);
    if (given === null) return;
    // A function: "$&" in what somebody wrote is no pattern.
    text = text.replace("{}", () => given);
  }
  if (doubt !== undefined && !(await confirmed(doubt, button.textContent.trim()))) return;
  const done = await busy(button, () => command(session, text, { pressed: of }));
  // What was typed in vain is there when it is tried again.
  if (!done && given !== null) button.dataset.value = given;
}

function start() {
  if (document.documentElement.dataset.site) return;
  document.documentElement.dataset.site = "on";
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("button[data-command][data-session]");
    if (button && !button.disabled) pressed(button);
  });
  localTimes();
  scrollable();
  goOn();
  addEventListener("resize", () => scrollable());
  // What is folded up has no size.
  document.addEventListener("toggle", (event) => scrollable(event.target), true);
  for (const one of document.querySelectorAll(".tabs [aria-current], .site-nav [aria-current]")) {
    one.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

start();
