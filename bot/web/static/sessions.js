// Conversations that were not read yet: asks until they are, then shows them in their order.
import { allRead, api } from "./site.js";

const note = document.getElementById("unread");

async function read() {
  let left = Number(note.dataset.unread);
  while (left > 0) {
    const answer = await api("/sessions", { limit: 1 });
    if (answer.unread >= left) return;
    left = answer.unread;
    note.textContent = `${left.toLocaleString()} are still being read; until then they stand last.`;
  }
  allRead(note, "All are read.", "Show them in order");
}

if (note) read().catch(() => {});
