// Answers on their way, one at a time and in order. Each is kept on this device until the portal says that it has it.

const BACKOFF_MS = [1000, 2000, 4000, 8000, 15_000]; // then 30 s

export class Queue {
  /** `on`: changed(), saved(entry, reply), refused(entry, status, body). `connection.post` sends. */
  constructor(store, connection, on) {
    this.store = store;
    this.connection = connection;
    this.on = on;
    this.entries = [];
    this.isRunning = false;
    this.isStopped = true;
    this.failures = 0;
    this.wake = () => {};
    addEventListener("online", () => this.wake());
  }

  /** Take up what this device kept, and begin to send it. */
  open() {
    this.entries = this.store.read("queue") ?? [];
    this.entries.forEach((entry) => (entry.body.is_late = true));
    this.isStopped = false;
    this.failures = 0;
    this.on.changed();
    this.drain();
  }

  /** Another tab has the session: nothing more is sent or kept from here. */
  close() {
    this.isStopped = true;
    this.wake();
  }

  /** "saved", "saving", or "kept" while the portal cannot be reached. */
  get state() {
    if (!this.entries.length) return "saved";
    return this.failures ? "kept" : "saving";
  }

  add(entry) {
    entry.body.is_late = this.entries.length > 0;
    this.entries.push(entry);
    this.keep();
    this.drain();
  }

  keep() {
    if (this.isStopped) return;
    if (this.entries.length) this.isKept = this.store.write("queue", this.entries);
    else this.store.remove("queue");
    this.on.changed();
  }

  /** The tasks of a trial whose answers are on their way. */
  tasksOf(position) {
    return this.entries.filter((entry) => entry.position === position).flatMap((entry) => entry.tasks);
  }

  async drain() {
    if (this.isRunning) return;
    this.isRunning = true;
    while (this.entries.length && !this.isStopped) {
      const wait_ms = await this.sendFirst();
      if (wait_ms && !this.isStopped) await this.sleep(wait_ms);
    }
    this.isRunning = false;
    this.on.changed();
  }

  /** Send the first entry; the time to wait before the next attempt. */
  async sendFirst() {
    const [entry] = this.entries;
    let answer;
    try {
      answer = await this.connection.post("answers", entry.body);
    } catch (error) {
      this.failures += 1;
      entry.body.is_late = true;
      this.keep();
      return Math.max(1000 * (error.retryAfter_s ?? 0), BACKOFF_MS[this.failures - 1] ?? 30_000);
    }
    this.failures = 0;
    const { status, body } = answer;
    if (status === 425) {
      this.on.changed();
      return 1000 * Math.max(0.2, body.retry_after_s ?? 1);
    }
    if (status === 410 || status === 404 || body.problem === "other-tab" || this.isStopped) return 0;
    this.entries.shift();
    this.keep();
    if (status === 200) this.on.saved(entry, body);
    else this.on.refused(entry, status, body);
    return 0;
  }

  sleep(wait_ms) {
    return new Promise((resolve) => {
      this.wake = resolve;
      setTimeout(resolve, wait_ms);
    });
  }
}
