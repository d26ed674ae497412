// Tapes that were not read yet: asks until they are, then shows the figures of all.
import { _, number } from "./language.js";
import { allRead, api } from "./site.js";

const PAUSE = 150; // Milliseconds between two requests, so that others are answered, too.
const note = document.getElementById("unread");

async function read() {
  const { days, tape } = note.dataset;
  for (;;) {
    const answer = await api("/statistics", { days, tape });
    if (answer.complete) break;
    const values = { number: number(answer.read), total: number(answer.tapes) };
    note.textContent = _("{number} of {total} tapes are read …", values);
    await new Promise((done) => setTimeout(done, PAUSE));
  }
  allRead(note, _("All tapes are read."), _("Show the figures of all"));
}

if (note) read().catch(() => {});
