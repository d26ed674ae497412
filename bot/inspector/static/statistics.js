// Tapes that were not read yet: asks until they are, then shows the figures of all.
import { allRead, api } from "./site.js";

const PAUSE = 150; // Milliseconds between two requests, so that others are answered, too.
const note = document.getElementById("unread");

async function read() {
  const { days, tape } = note.dataset;
  for (;;) {
    const answer = await api("/statistics", { days, tape });
    if (answer.complete) break;
    note.textContent = `${answer.read.toLocaleString()} of ${answer.tapes.toLocaleString()} tapes are read …`;
    await new Promise((done) => setTimeout(done, PAUSE));
  }
  allRead(note, "All tapes are read.", "Show the figures of all");
}

if (note) read().catch(() => {});
