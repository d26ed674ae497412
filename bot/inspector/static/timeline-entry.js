// One entry, with all that is known of it, in a dialog.
import { api, el, rendered, sheet, when } from "./site.js";

const STATUSES = { pending: "pending", superseded: "replaced", retired: "ended" };

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
    body = el("p", {}, "There is no entry with this id: a reset removed it, or its line is damaged.");
  }
  const turn = (label, by) => {
    const made = el("button", { type: "button", class: "button" }, label);
    made.addEventListener("click", () => {
      dialog.close();
      go(id + by);
    });
    return made;
  };
  const buttons = missing ? [] : [turn("Previous", -1), turn("Next", 1)];
  const dialog = sheet(`Entry ${id}`, el("div", { class: "stack tl-entry" }, body), { buttons, back });
  return dialog;
}

function told(one, tape, labels) {
  const [label, kind] = labels[one.category];
  const facts = [
    ["What", el("span", { class: `badge ${kind}` }, label), ` ${one.kind}${one.name ? ` ${one.name}` : ""}`],
    one.time && ["When", el("time", { datetime: one.time, title: one.time }, when(one.time))],
    one.who && ["Who", one.who],
    one.turn && [
      "Turn",
      el("a", { href: `/turn?${new URLSearchParams({ tape, turn: one.turn, near: one.id })}` }, "What the model saw"),
    ],
    one.problem !== "general" && ["Problem", one.problem],
  ].filter(Boolean);
  return [
    el("dl", { class: "kv" }, facts.map(([name, ...value]) => [el("dt", {}, name), el("dd", {}, value)])),
    one.erased ? el("p", { class: "note" }, "Its text was erased on request.") : null,
    one.html === null ? el("p", { class: "prewrap", dir: "auto" }, one.full || "(no words)") : rendered(one.html),
    listed("Evidence", one.evidence, (at) =>
      el("a", { href: place(at.tape, at.entry) }, at.tape === tape ? `entry ${at.entry}` : `${at.tape}, entry ${at.entry}`),
    ),
    listed("Facts from this entry", one.facts, (fact) => [
      el("a", { href: `/fact?${new URLSearchParams({ tape: fact.tape, number: fact.number })}` }, fact.text),
      fact.status === "active" ? null : [" ", el("span", { class: "badge" }, STATUSES[fact.status] ?? fact.status)],
    ]),
    el(
      "details",
      {},
      el("summary", {}, "Raw entry"),
      el("pre", { class: "raw" }, JSON.stringify({ id: one.id, kind: one.kind, payload: one.payload, meta: one.meta }, null, 2)),
    ),
  ];
}

function listed(title, items, shown) {
  if (!items.length) return null;
  return el("section", {}, el("h3", {}, title), el("ul", {}, items.map((one) => el("li", {}, shown(one)))));
}
