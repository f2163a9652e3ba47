// Fetches the recordings of the trial on screen and of those ahead, a few at a time, and decodes them when needed.
// What is no recording is asked for again, later at 503 (store away); then it counts as broken.

const AT_ONCE = 2;
const RETRY_AFTER_MS = [500, 1500, 4000];
const OFFLINE_RETRY_MS = 3000;
const SHORTER_BY_S = 0.05; // than announced: not all of it has come
const RATES_HZ = [16000, 48000]; // of the recordings; the other where a browser lacks it

export class Clips {
  /** `on`: changed(address), failed(address, why, attempt); `answers()`: whether the portal can be reached at all. */
  constructor(answers, on) {
    this.answers = answers;
    this.on = on;
    this.clips = new Map();
    addEventListener("online", () => this.clips.forEach((clip) => clip.offline && this.again(clip)));
  }

  /** From here on these samples are wanted, the most urgent first; others are forgotten. */
  want(samples) {
    const before = this.clips;
    this.clips = new Map();
    for (const { address, seconds } of samples) {
      const clip = before.get(address) ?? { address, seconds, state: "waiting", attempt: 0, bytes: null, buffer: null };
      this.clips.set(address, clip);
    }
    for (const [address, clip] of before) if (!this.clips.has(address)) clip.abort?.abort();
    this.pump();
  }

  /** "waiting", "loading", "ready" (its bytes are here) or "broken". */
  state(address) {
    return this.clips.get(address)?.state ?? "waiting";
  }

  buffer(address) {
    return this.clips.get(address)?.buffer ?? null;
  }

  retry(address, attempt = 0) {
    const clip = this.clips.get(address);
    if (clip?.state !== "broken") return;
    clip.attempt = attempt;
    this.again(clip);
  }

  /** What was given up while it was fetched ahead may be there by now: it is asked for once more. */
  retryOnce(address) {
    this.retry(address, RETRY_AFTER_MS.length);
  }

  /** Of what was broken nothing is remembered: it is fetched again when it is wanted again. */
  forget(address) {
    this.clips.delete(address);
  }

  again(clip) {
    clip.offline = false;
    if (this.clips.get(clip.address) !== clip || clip.state === "ready") return;
    clip.state = "waiting";
    this.changed(clip);
  }

  changed({ address }) {
    this.on.changed(address);
    this.pump();
  }

  pump() {
    const all = [...this.clips.values()];
    let free = AT_ONCE - all.filter((clip) => clip.state === "loading").length;
    for (const clip of all) {
      if (free > 0 && clip.state === "waiting") {
        free -= 1;
        this.load(clip);
      }
    }
  }

  async load(clip) {
    clip.state = "loading";
    clip.attempt += 1;
    clip.abort = new AbortController();
    this.on.changed(clip.address);
    try {
      clip.bytes = await fetched(clip.address, clip.attempt > 1, clip.abort.signal);
      clip.state = "ready";
      if (clip.isNeeded) await this.decode(clip);
    } catch (error) {
      if (clip.abort.signal.aborted) return;
      await this.failed(clip, error.message);
    }
    this.changed(clip);
  }

  /** Decode what is on screen; a recording that cannot be decoded counts as not having come. */
  async need(address) {
    const clip = this.clips.get(address);
    if (!clip || clip.isNeeded) return;
    clip.isNeeded = true;
    if (clip.state !== "ready") return;
    try {
      await this.decode(clip);
    } catch (error) {
      await this.failed(clip, error.message);
    }
    this.changed(clip);
  }

  async decode(clip) {
    const { bytes } = clip;
    clip.bytes = null; // decoding takes them
    const buffer = await decoder().decodeAudioData(bytes).catch(() => {
      throw new Error("cannot be decoded");
    });
    if (buffer.duration < clip.seconds - SHORTER_BY_S) throw new Error("truncated");
    clip.buffer = buffer;
  }

  async failed(clip, why) {
    clip.state = "pausing";
    if (!(await this.answers())) {
      clip.attempt -= 1;
      clip.offline = true;
      setTimeout(() => clip.offline && this.again(clip), OFFLINE_RETRY_MS);
      return;
    }
    this.on.failed(clip.address, why, clip.attempt);
    if (clip.attempt > RETRY_AFTER_MS.length) clip.state = "broken";
    else setTimeout(() => this.again(clip), RETRY_AFTER_MS[clip.attempt - 1] * (why.endsWith("503") ? 8 : 1));
  }
}

async function fetched(address, isRetry, signal) {
  const answer = await fetch(address, { credentials: "omit", cache: isRetry ? "reload" : "default", signal });
  if (!answer.ok) throw new Error(`answer ${answer.status}`);
  const announced = Number(answer.headers.get("Content-Length"));
  const bytes = await answer.arrayBuffer();
  const kind = String.fromCharCode(...new Uint8Array(bytes, 0, Math.min(4, bytes.byteLength)));
  if (kind !== "RIFF" && kind !== "fLaC") throw new Error("no recording");
  const stated = kind === "RIFF" && bytes.byteLength > 8 ? new DataView(bytes).getUint32(4, true) + 8 : 0;
  if (Math.max(announced, stated) > bytes.byteLength) throw new Error("truncated");
  return bytes;
}

let ofDecoding = null;

function decoder() {
  for (const rate of RATES_HZ) {
    try {
      ofDecoding ??= new OfflineAudioContext(2, 1, rate);
    } catch {
      // Not offered here: the next one.
    }
  }
  return ofDecoding;
}

/** The rate of decoded recordings, for a context that plays them without stretching each of them. */
export function decodedRate_hz() {
  return decoder().sampleRate;
}
