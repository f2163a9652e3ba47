// Plays one decoded recording at a time by Web Audio, from its beginning and at its own speed. Notes of each playback how
// much of it the audio clock really rendered.

import { RATE_HZ } from "./clips.js";

const LEAD_S = 0.03;
const STARTED_WITHIN_MS = 1500;
const TOLERANCE = 0.1;

export class Player {
  /** `on`: started(slot), progress(slot, share), ended(slot, play), silent(state), event(kind, data). */
  constructor(on) {
    this.on = on;
    this.context = null;
    this.current = null;
    if (navigator.audioSession) navigator.audioSession.type = "playback"; // heard although the phone is set to silent
    for (const kind of ["pointerup", "touchend", "keydown", "click"]) {
      addEventListener(kind, () => this.unlock(), { capture: true, passive: true });
    }
    document.addEventListener("visibilitychange", () => {
      if (document.hidden && this.current) this.current.remarks.add("hidden");
    });
  }

  /** Within a tap or a key: the browser lets the sound start. */
  unlock() {
    if (this.context?.state === "closed") this.context = null;
    this.context ??= this.newContext();
    if (this.context.state !== "running") this.context.resume().catch(() => {});
  }

  newContext() {
    const context = new AudioContext({ sampleRate: RATE_HZ });
    context.addEventListener("statechange", () => this.onState(context));
    return context;
  }

  onState(context) {
    const latency_ms = Math.round(1000 * ((context.baseLatency || 0) + (context.outputLatency || 0)));
    this.on.event("audio", { state: context.state, rate_hz: context.sampleRate, latency_ms });
    if (context.state !== "running" && this.current) {
      this.current.remarks.add("suspended");
      if (document.hidden || context.state === "interrupted") this.stop("suspended");
    }
  }

  get slot() {
    return this.current?.slot ?? null;
  }

  play(slot, buffer) {
    this.stop("stopped");
    this.unlock();
    const { context } = this;
    const source = new AudioBufferSourceNode(context, { buffer });
    const begin_s = context.currentTime + LEAD_S;
    const play = { slot, source, buffer, begin_s, wall_ms: performance.now(), remarks: new Set() };
    play.underruns = context.playbackStats?.underrunEvents ?? 0;
    if (document.hidden) play.remarks.add("hidden");
    source.addEventListener("ended", () => this.current === play && this.finish(play));
    this.start(play);
    play.timer = setInterval(() => this.tick(play), 100);
    this.current = play;
    this.on.started(slot);
  }

  start({ source, begin_s }) {
    source.connect(this.context.destination);
    source.start(begin_s);
  }

  silence({ source }) {
    source.disconnect();
    source.stop();
  }

  tick(play) {
    const heard_s = this.heard_s(play);
    if (heard_s > 0) return this.on.progress(play.slot, heard_s / play.buffer.duration);
    if (performance.now() - play.wall_ms < STARTED_WITHIN_MS) return undefined;
    // The audio clock stands still: this context will not play any more, the next tap makes another one.
    const { state } = this.context;
    this.stop("suspended");
    this.context.close().catch(() => {});
    this.context = null;
    return this.on.silent(state);
  }

  heard_s(play) {
    return Math.max(0, Math.min(play.buffer.duration, this.context.currentTime - play.begin_s));
  }

  stop(note) {
    const play = this.current;
    if (!play) return;
    play.remarks.add(note);
    this.finish(play);
    this.silence(play);
  }

  finish(play) {
    this.current = null;
    clearInterval(play.timer);
    const heard_s = this.heard_s(play);
    const { duration } = play.buffer;
    const wall_s = (performance.now() - play.wall_ms) / 1000;
    const isToTheEnd = heard_s >= duration - 0.05;
    // None of these can happen by this page alone: somebody has changed what the browser does.
    const isFaster = play.source.playbackRate.value !== 1 || play.source.detune.value !== 0;
    const isAhead = wall_s < heard_s * (1 - TOLERANCE) - 0.1;
    const isCut = !isToTheEnd && !["stopped", "suspended"].some((note) => play.remarks.has(note));
    if (isFaster || isAhead) play.remarks.add("rate");
    else if (isCut) play.remarks.add("seek");
    if ((this.context.playbackStats?.underrunEvents ?? 0) > play.underruns) play.remarks.add("underrun");
    this.on.ended(play.slot, {
      heard_ms: Math.round(1000 * heard_s),
      is_whole: isToTheEnd && !isFaster && !isAhead && !document.hidden, // nobody knows whether its end was heard
      remarks: [...play.remarks],
    });
  }
}
