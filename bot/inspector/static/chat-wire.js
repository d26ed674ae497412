// The chat's socket: opened again whenever it ends, until the login does.
// States: "opening", "open", "waiting" (a pause before the next try), "offline", "ended" (for good).

import { _ } from "./language.js";

const FIRST = 500; // Milliseconds before the second try; each pause is twice the one before.
const LONGEST = 30_000;
const OPENING = 20_000; // Milliseconds that a socket may take to open,
const UNHEARD = 60_000; // and a message to be accepted: a recording in it is read first.
const NOBODY = 4401;
const ELSEWHERE = 4403;
const TOO_MANY = 4429;

export class Wire {
  /**
   * @param seen Returns what is shown: the position behind which lines are wanted, and the mark they came with.
   * @param hear Called with each frame.
   * @param tell Called with (state, text) whenever the state is another.
   */
  constructor(seen, hear, tell) {
    this.seen = seen;
    this.hear = hear;
    this.tell = tell;
    this.tries = 0;
    this.state = "";
    this.socket = null;
    addEventListener("online", () => this.again());
    addEventListener("offline", () => this.lost("offline"));
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.state === "waiting") this.open();
    });
  }

  /** Connect. */
  open() {
    if (this.state === "ended") return;
    clearTimeout(this.timer);
    this.let();
    this.become("opening");
    const url = new URL("/chat/socket", location.href);
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    for (const [name, value] of Object.entries(this.seen())) url.searchParams.set(name, value);
    const socket = new WebSocket(url);
    this.socket = socket;
    this.timer = setTimeout(() => this.lost(), OPENING);
    socket.addEventListener("message", (event) => {
      if (socket === this.socket) this.take(JSON.parse(event.data));
    });
    socket.addEventListener("close", (event) => {
      if (socket === this.socket) this.closed(event);
    });
  }

  take(heard) {
    if (heard.type === "welcome") {
      clearTimeout(this.timer);
      this.tries = 0;
      this.become("open");
    }
    if (heard.type === "ended") this.end(heard.text);
    else this.hear(heard);
  }

  /** Send a frame; false where that cannot be done now. */
  send(frame) {
    if (this.state !== "open") return false;
    this.socket.send(JSON.stringify(frame));
    return true;
  }

  /** Expect word soon: a connection that is dead without knowing is ended. */
  expect() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.lost(), UNHEARD);
  }

  /** Expect nothing more. */
  heard() {
    clearTimeout(this.timer);
  }

  /** Try at once, with a new socket: the network is another. */
  again() {
    this.tries = 0;
    this.open();
  }

  let() {
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  async closed(event) {
    const opening = this.state === "opening";
    if (event.code === NOBODY) return this.end(event.reason);
    if (event.code === ELSEWHERE) return this.end(_("This page was opened at a different address than the bot's."));
    if (event.code === TOO_MANY) this.tries = 6; // Each try would be refused for as long as they are open.
    this.lost("waiting", event.code === TOO_MANY ? event.reason || _("You have too many chats open.") : "");
    // A refusal before the socket opened looks like any failure; ask who we are.
    if (opening && (await isNobody())) this.end("");
    return undefined;
  }

  lost(state = "waiting", text = "") {
    if (this.state === "ended") return;
    clearTimeout(this.timer);
    this.let();
    this.become(navigator.onLine ? state : "offline", text);
    const pause = Math.min(LONGEST, FIRST * 2 ** this.tries) * (0.5 + Math.random() / 2);
    this.tries += 1;
    // Also while offline: a browser's idea of that is sometimes wrong.
    this.timer = setTimeout(() => this.open(), pause);
  }

  end(text) {
    clearTimeout(this.timer);
    this.become("ended", text);
    this.let();
  }

  become(state, text = "") {
    if (state === this.state) return;
    this.state = state;
    this.tell(state, text);
  }
}

async function isNobody() {
  try {
    const response = await fetch("/api/v1/commands", { credentials: "same-origin" });
    return response.status === 401 || response.status === 403;
  } catch {
    return false;
  }
}
