// Requests to the portal with a time limit, the heartbeat, and which tab of this session may write.

const TIMEOUT_MS = 30_000;
const ALIVE_EVERY_MS = 30_000;
const ASLEEP_AFTER_MS = 20 * 60_000; // nobody touched the page: its place may go to somebody else

/** The portal did not answer, or not in its own words. */
export class Unreachable extends Error {
  constructor(reason, retryAfter_s = 0) {
    super(reason);
    this.retryAfter_s = retryAfter_s;
  }
}

export class Connection {
  /** `on`: reached(bool), other(), ended(address, isTold), events() → to tell, returned(events) that were not told. */
  constructor(addresses, on) {
    this.addresses = addresses;
    this.on = on;
    this.tab = newKey();
    this.active = false;
    this.isAway = false; // it answers that it is unavailable, as during maintenance
    this.touched = performance.now();
    for (const kind of ["pointerdown", "keydown"]) {
      addEventListener(kind, () => (this.touched = performance.now()), { capture: true, passive: true });
    }
    setInterval(() => this.active && performance.now() - this.touched < ASLEEP_AFTER_MS && this.beat(), ALIVE_EVERY_MS);
    this.channel = globalThis.BroadcastChannel && new BroadcastChannel(`listening:${addresses.session}`);
    this.channel?.addEventListener("message", ({ data }) => {
      if (this.active && data !== this.tab) this.on.other();
    });
  }

  /** Status and body of the answer to a request; throws Unreachable. Other tabs and ended sessions are told by `on`. */
  async post(name, body) {
    const text = JSON.stringify({ tab: this.tab, ...body });
    const answer = await this.fetched(name, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: text,
      keepalive: text.length < 30_000, // browsers refuse more
    });
    const { address } = answer.body; // without it the answer may be somebody else's, such as a proxy's
    if (answer.status === 410 || answer.status === 404) this.on.ended(address ?? this.addresses.session, Boolean(address));
    if (answer.status === 409 && answer.body.problem === "other-tab") this.on.other();
    return answer;
  }

  async fetched(name, options) {
    const limit = new AbortController();
    const timer = setTimeout(() => limit.abort(), TIMEOUT_MS);
    let answer;
    let body;
    try {
      // The address is the credential.
      const asked = { ...options, credentials: "omit", cache: "no-store", signal: limit.signal };
      answer = await fetch(this.addresses[name], asked);
      body = await answer.json().catch(() => null);
    } catch (error) {
      this.isAway = false;
      this.on.reached(false);
      throw new Unreachable(error.message);
    } finally {
      clearTimeout(timer);
    }
    const { status } = answer;
    this.isAway = status === 503;
    const isOurs = body !== null || status === 404 || status === 410;
    if (!isOurs || status >= 500 || status === 429 || status === 408) {
      this.on.reached(false);
      throw new Unreachable(`answer ${status}`, Number(answer.headers.get("Retry-After")) || 0);
    }
    this.on.reached(true);
    return { status, body: body ?? {} };
  }

  /** Make this the tab that may write; the state of the session, or null where it has ended. */
  async takeOver() {
    const { status, body } = await this.post("takeOver", {});
    if (status !== 200) return null;
    this.active = true;
    this.channel?.postMessage(this.tab);
    return body;
  }

  async beat() {
    const events = this.on.events();
    if (!(await this.answers(events))) this.on.returned(events);
  }

  /** Whether the portal answers: then a clip that does not come is broken, not the connection. */
  async answers(events = []) {
    try {
      await this.post("alive", { events });
      return true;
    } catch {
      return false;
    }
  }
}

export function newKey() {
  return Array.from(crypto.getRandomValues(new Uint8Array(12)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
