// Conversations that were not read yet: asks until they are, then shows them in their order.
import { _, ngettext } from "./language.js";
import { allRead, api } from "./site.js";

const PAUSE = 500; // Milliseconds after an answer that knew of no more,
const MOST_VAIN = 20; // and so many of those in a row until the note just stays.
const note = document.getElementById("unread");

async function read() {
  let left = Number(note.dataset.unread);
  let vain = 0;
  while (left > 0) {
    const answer = await api("/sessions", { limit: 1 });
    if (answer.unread >= left) {
      // Another request is reading, or the machine was busy; or there are more than are ever kept.
      vain += 1;
      if (vain === MOST_VAIN) return;
      await new Promise((later) => setTimeout(later, PAUSE));
      continue;
    }
    vain = 0;
    left = answer.unread;
    note.textContent = ngettext(
      "{n} is still being read and is listed last.",
      "{n} are still being read and are listed last.",
      left,
    );
  }
  allRead(note, _("All are read."), _("Show them in order"));
}

if (note) read().catch(() => {});
