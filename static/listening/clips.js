// Fetches the recordings of the trial on screen and of those ahead, a few at a time, and decodes them when needed.
// What is no recording is asked for again, later at 503 (store away); then it counts as broken.

import { part } from "./words.js";

const AT_ONCE = 2;
const RETRY_AFTER_MS = [500, 1500, 4000];
const OFFLINE_RETRY_MS = 3000;
const RIFF = 0x52494646; // how a WAV file begins
const SHORTER_BY_S = 0.05; // than announced: not all of it has come
export const RATE_HZ = Number(part("trials").dataset.rate); // of the recordings: a context of that rate plays them as they are

export class Clips {
  /** `on`: changed(address), failed(clip, why); `answers()`: whether the portal can be reached at all. */
  constructor(answers, on) {
    this.answers = answers;
    this.on = on;
    this.clips = new Map();
    addEventListener("online", () => this.clips.forEach((clip) => clip.offline && this.again(clip)));
  }

  /** The samples that are wanted, the most urgent first; others are forgotten. */
  want(samples) {
    const before = this.clips;
    this.clips = new Map();
    for (const sample of samples) {
      this.clips.set(sample.address, before.get(sample.address) ?? { ...sample, state: "waiting", attempt: 0 });
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

  /** What was given up ahead of its turn is asked for once more. */
  retryOnce(address) {
    this.retry(address, RETRY_AFTER_MS.length);
  }

  /** It is fetched again when it is wanted again. */
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

  /** What cannot be decoded counts as not having come. */
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
    const buffer = await new OfflineAudioContext(2, 1, RATE_HZ).decodeAudioData(bytes).catch(() => {
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
    this.on.failed(clip, why);
    if (clip.attempt > RETRY_AFTER_MS.length) clip.state = "broken";
    else setTimeout(() => this.again(clip), RETRY_AFTER_MS[clip.attempt - 1] * (why.endsWith("503") ? 8 : 1));
  }
}

async function fetched(address, isRetry, signal) {
  const answer = await fetch(address, { credentials: "omit", cache: isRetry ? "reload" : "default", signal });
  if (!answer.ok) throw new Error(`answer ${answer.status}`);
  const announced = Number(answer.headers.get("Content-Length"));
  const bytes = await answer.arrayBuffer();
  const head = new DataView(bytes);
  if (bytes.byteLength < 8 || head.getUint32(0) !== RIFF) throw new Error("no recording");
  if (Math.max(announced, head.getUint32(4, true) + 8) > bytes.byteLength) throw new Error("truncated");
  return bytes;
}
