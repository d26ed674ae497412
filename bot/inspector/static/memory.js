// The page of memory: facts are filtered while somebody types. Without this file the form does the same.
// Rule 1: what is shown is what the page itself would show: it is asked for, and its list is put in the old one's place.
// Rule 2: what comes late is dropped: the list fits what stands in the form now.

import { _ } from "./language.js";
import { localTimes, toast } from "./site.js";

const PAUSE = 200; // Milliseconds without a key until the list is asked for.
const PARTS = ["found", "fact-list", "fact-pages"];

const waiting = document.getElementById("waiting-facts");
const chosen = document.querySelector("[data-chosen]");
const form = document.querySelector("form[data-filter]");
const list = document.getElementById("fact-list");
let asked = null;
let timer = null;

function later() {
  clearTimeout(timer);
  timer = setTimeout(refresh, PAUSE);
}

async function refresh() {
  clearTimeout(timer);
  asked?.abort();
  const mine = (asked = new AbortController());
  const address = `/memory?${new URLSearchParams(new FormData(form))}`;
  list.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, { headers: { Accept: "text/html" }, signal: mine.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (mine !== asked) return;
    // Nobody is logged in any more, or the bot tells of an error: the page itself says so.
    if (!answer.ok || !page.getElementById("fact-list")) return location.assign(address);
    for (const part of PARTS) {
      document.getElementById(part).replaceChildren(...page.getElementById(part).childNodes);
    }
    localTimes(list);
    history.replaceState(null, "", address);
  } catch (error) {
    if (error.name !== "AbortError") toast(_("The bot cannot be reached. Is it running?"), "bad");
  } finally {
    if (mine === asked) list.removeAttribute("aria-busy");
  }
}

if (form && list) {
  form.addEventListener("input", later);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    refresh();
  });
}

/** Let the buttons above the pending facts decide on those that are chosen. */
function choose() {
  const boxes = [...waiting.querySelectorAll("input[type=checkbox]")];
  const numbers = boxes.filter((box) => box.checked).map((box) => box.value);
  chosen.querySelector("[data-all]").checked = numbers.length === boxes.length;
  for (const button of chosen.querySelectorAll("button[data-command]")) {
    const [form, word] = button.dataset.command.split(" ");
    button.dataset.command = [form, word, ...numbers].join(" ");
    button.disabled = !numbers.length;
  }
}

if (waiting && chosen) {
  waiting.addEventListener("change", choose);
  chosen.querySelector("[data-all]").addEventListener("change", (event) => {
    for (const box of waiting.querySelectorAll("input[type=checkbox]")) box.checked = event.target.checked;
    choose();
  });
  choose();
}
