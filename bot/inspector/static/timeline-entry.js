// One entry, with all that is known of it, in a dialog.
import { _ } from "./language.js";
import { api, el, rendered, sheet, when } from "./site.js";

const STATUSES = { pending: _("pending"), superseded: _("replaced"), retired: _("ended") };

/** The address of an entry in its timeline. */
export function place(tape, entry) {
  return `/timeline?${new URLSearchParams({ tape, entry })}`;
}

/** Show an entry; `go(id)` shows another one of the same tape. */
export async function show(tape, id, labels, { go, back }) {
  let body;
  let missing = false;
  try {
    body = told(await api("/entry", { tape, id }), tape, labels);
  } catch (error) {
    if (error.status !== 404) throw error;
    missing = true;
    body = el("p", {}, _("There is no entry with this id: a reset removed it, or its line is damaged."));
  }
  const turn = (label, by) => {
    const made = el("button", { type: "button", class: "button" }, label);
    made.addEventListener("click", () => {
      dialog.close();
      go(id + by);
    });
    return made;
  };
  const buttons = missing ? [] : [turn(_("Previous"), -1), turn(_("Next"), 1)];
  const dialog = sheet(_("Entry {number}", { number: id }), el("div", { class: "stack tl-entry" }, body), { buttons, back });
  return dialog;
}

function told(one, tape, labels) {
  const [label, kind] = labels[one.category];
  const facts = [
    [_("What"), el("span", { class: `badge ${kind}` }, label), " ", el("span", { class: "mono" }, `${one.kind} ${one.name ?? ""}`.trim())],
    one.time && [_("When"), el("time", { datetime: one.time, title: one.time }, when(one.time))],
    one.who && [_("Who"), el("bdi", {}, one.who)],
    one.turn && [
      _("Turn"),
      el("a", { href: `/turn?${new URLSearchParams({ tape, turn: one.turn, near: one.id })}` }, _("What the model saw")),
    ],
    one.problem !== "general" && [_("Problem"), one.problem],
  ].filter(Boolean);
  return [
    el("dl", { class: "kv" }, facts.map(([name, ...value]) => [el("dt", {}, name), el("dd", {}, value)])),
    one.erased ? el("p", { class: "note" }, _("Its text was erased on request.")) : null,
    one.html === null ? el("p", { class: "prewrap", dir: "auto" }, one.full || _("(no words)")) : rendered(one.html),
    listed(_("Evidence"), one.evidence, (at) =>
      el("a", { href: place(at.tape, at.entry) }, at.tape === tape
        ? _("entry {entry}", { entry: at.entry })
        : _("{tape}, entry {entry}", at)),
    ),
    listed(_("Facts from this entry"), one.facts, (fact) => [
      el("a", { href: `/fact?${new URLSearchParams({ tape: fact.tape, number: fact.number })}`, dir: "auto" }, fact.text),
      fact.status === "active" ? null : [" ", el("span", { class: "badge" }, STATUSES[fact.status] ?? fact.status)],
    ]),
    el(
      "details",
      {},
      el("summary", {}, _("Raw entry")),
      el("pre", { class: "raw" }, JSON.stringify({ id: one.id, kind: one.kind, payload: one.payload, meta: one.meta }, null, 2)),
    ),
  ];
}

function listed(title, items, shown) {
  if (!items.length) return null;
  return el("section", {}, el("h3", {}, title), el("ul", {}, items.map((one) => el("li", {}, shown(one)))));
}
