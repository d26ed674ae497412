// The chat's page: what is written goes out, what is said comes in. The parts are in chat-*.js.

import { _ } from "./language.js";
import { toast } from "./site.js";
import { Completion } from "./chat-commands.js";
import { Composer } from "./chat-composer.js";
import { Files } from "./chat-files.js";
import { Log } from "./chat-log.js";
import { Outbox, frame } from "./chat-outbox.js";
import { State } from "./chat-state.js";
import { Wire } from "./chat-wire.js";

const at = (id) => document.getElementById(`chat-${id}`);
const session = document.getElementById("chat").dataset.session;

const outbox = new Outbox(session);
const state = new State({ line: at("state"), activity: at("activity"), stop: at("stop") });
const files = new Files(at("files"), () => composer.changed(), () => at("attach").focus());
const log = new Log(at("log"), at("scroll"), at("jump"), { press, again, back });
const completion = new Completion(at("text"), at("options"), () => composer.edited());
const composer = new Composer({ form: at("form"), text: at("text"), send: at("send"), completion, files, session, say });
const wire = new Wire(() => ({ after: log.position, mark }), hear, (name, text) => tell(name, text));
const accepted = new Set(); // Ids of messages that the bot has, and whose lines did not come yet.
let mark = ""; // Another one once something was erased: then everything comes anew.
let isAsking = false; // For older lines.
let hasOlder = false;

function hear(heard) {
  const take = {
    welcome: welcomed,
    lines: came,
    older: olderCame,
    partial: (one) => {
      state.writing(true);
      log.partial(one);
    },
    activity: acted,
    accepted: wasAccepted,
    refused: wasRefused,
  }[heard.type];
  take?.(heard);
}

function welcomed({ name, commands, max_bytes: most }) {
  log.me = name;
  files.most = most;
  completion.know(commands);
  for (const item of outbox.items) show(item);
  for (const item of outbox.waiting) post(item);
}

function came({ lines, reset, older, mark: current }) {
  mark = current ?? mark;
  if (reset) hasOlder = older;
  if (!state.isCaughtUp) log.stopGrowing(); // What still grows comes again.
  const fresh = log.show(lines, { reset, isUnsent: (id) => outbox.has(id) || accepted.has(id) });
  for (const { id, position } of lines) if (position) accepted.delete(id);
  // Behind the lines, where they were put by a reset.
  if (reset) for (const item of outbox.items) show(item);
  if (state.isCaughtUp) state.unseen(fresh.filter((one) => one.author !== "person").length);
  if (lines.some((one) => one.author === "bot")) state.writing(log.growing.size > 0);
  state.isCaughtUp = true;
  showOlder();
  at("empty").hidden = log.rows.size > 0;
  log.live();
}

function olderCame({ lines, more }) {
  isAsking = false;
  hasOlder = more && lines.length > 0;
  log.showOlder(lines);
  showOlder();
}

function showOlder() {
  at("older").hidden = !hasOlder;
  at("older").setAttribute("aria-busy", String(isAsking));
}

function askOlder() {
  if (!hasOlder || isAsking || !log.oldest) return;
  isAsking = wire.send({ type: "older", before: log.oldest });
  showOlder();
}

function acted({ state: what, detail }) {
  state.act(what, detail);
  // The answer itself comes on its own; what was broken off has none.
  if (what === "idle") setTimeout(() => state.isIdle && log.stopGrowing(), 3000);
}

function wasAccepted({ id }) {
  const item = outbox.get(id);
  outbox.drop(id);
  if (item?.type === "say") accepted.add(id);
  log.mark(id, "");
  settled();
}

function wasRefused({ id, text }) {
  const item = id ? outbox.get(id) : null;
  if (item?.type === "say") {
    outbox.refuse(id, text);
    show(item);
  } else {
    outbox.drop(id);
    toast(text, "bad");
  }
  settled();
}

/** There is word on a message: stop waiting for it, where no other is under way. */
function settled() {
  for (const one of document.querySelectorAll(".chat-buttons [aria-busy]")) one.removeAttribute("aria-busy");
  if (!outbox.waiting.length) wire.heard();
  tell(wire.state);
}

function say(text, sent) {
  const item = outbox.add({ type: "say", text, files: sent });
  show(item);
  at("empty").hidden = true;
  log.toEnd();
  post(item);
}

function press(line, command, button) {
  if (outbox.items.some((one) => one.type === "press" && one.message === line.id)) return;
  const item = outbox.add({ type: "press", command, message: line.id });
  button.setAttribute("aria-busy", "true");
  post(item);
}

function post(item) {
  if (wire.send(frame(item))) wire.expect();
  else tell(wire.state);
}

function show(item) {
  if (item.type !== "say") return;
  const shown = item.files.map(({ id, name, kind }) => ({ kind, name, url: files.previews.get(id) ?? null }));
  const line = { id: item.id, position: 0, author: "person", name: "", text: item.text, at: item.at, attachments: shown };
  log.show([line]);
  marked(item);
}

function marked(item) {
  const waiting = wire.state === "open" ? _("Sending…") : _("Not sent yet.");
  log.mark(item.id, item.refused ? _("Not sent: {reason}", { reason: item.refused }) : waiting, Boolean(item.refused));
}

/** Send what was refused once more: as another message, since the bot has an answer to this one. */
function again(id) {
  const { text, files: sent } = outbox.get(id);
  forget(id);
  say(text, sent);
  at("text").focus();
}

function back(id) {
  const { text } = outbox.get(id);
  forget(id);
  composer.take(text);
}

function forget(id) {
  outbox.drop(id);
  log.drop(id);
}

function tell(name, text) {
  if (name !== "open") state.isCaughtUp = isAsking = false;
  for (const item of outbox.waiting) marked(item);
  state.connection(name, text, outbox.waiting.length);
  composer.end(name === "ended");
}

at("older").addEventListener("click", askOlder);
at("jump").addEventListener("click", () => at("text").focus());
at("scroll").addEventListener("scroll", () => at("scroll").scrollTop < 300 && askOlder(), { passive: true });
at("stop").addEventListener("click", () => {
  say("/stop", []);
  at("text").focus();
});
addEventListener("beforeunload", (event) => {
  if (outbox.waiting.length || files.items.length) event.preventDefault();
});
// Where a phone's keyboard covers the page instead of making it smaller, the page makes itself smaller.
visualViewport?.addEventListener("resize", () => {
  const isCovered = visualViewport.scale === 1 && visualViewport.height < innerHeight - 80;
  document.body.style.blockSize = isCovered ? `${visualViewport.height}px` : "";
  if (isCovered) scrollTo(0, 0);
});
for (const item of outbox.items) show(item);
wire.open();
