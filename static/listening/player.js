// Plays one decoded recording at a time by Web Audio, at its own speed: once, from its beginning, or a part of it over and
// over, changed for another one without a gap. Notes of each playback how much of it the audio clock really rendered.

import { RATE_HZ } from "./clips.js";

const LEAD_S = 0.03;
const STARTED_WITHIN_MS = 1500;
const TOLERANCE = 0.1;
const FADE_S = 0.008; // so that a change makes no click
const SHORTEST_LOOP_S = 0.05;

export class Player {
  /** `on`: started(slot), progress(slot, share), ended(slot, play), silent(state), event(kind, data). */
  constructor(on) {
    this.on = on;
    this.context = null;
    this.current = null;
    this.at_s = 0; // of what is repeated: the place at which it stopped
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

  /** `region`: from and to of the part that is repeated, in s; `at_s`: where it begins, the place reached if left out. */
  play(slot, buffer, region = null, at_s = null) {
    const before = this.end("stopped");
    this.unlock();
    const { context } = this;
    const begin_s = Math.round((context.currentTime + LEAD_S) * context.sampleRate) / context.sampleRate;
    const source = new AudioBufferSourceNode(context, { buffer });
    const play = { slot, source, buffer, begin_s, wall_ms: performance.now(), remarks: new Set() };
    if (before) silence(before, region ? begin_s : context.currentTime);
    if (region) repeat(play, region, at_s ?? (before ? placeOf(before, begin_s) : this.at_s));
    else source.connect(context.destination);
    play.underruns = context.playbackStats?.underrunEvents ?? 0;
    if (document.hidden) play.remarks.add("hidden");
    source.addEventListener("ended", () => this.current === play && this.finish(play));
    source.start(begin_s, play.at_s ?? 0);
    play.timer = setInterval(() => this.tick(play), 100);
    this.current = play;
    this.on.started(slot);
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

  heard_s({ begin_s, buffer, loop }) {
    return Math.max(0, Math.min(loop ? Infinity : buffer.duration, this.context.currentTime - begin_s));
  }

  /** The place of what is repeated, in s from the beginning of the recording. */
  get place_s() {
    return this.current ? placeOf(this.current, this.context.currentTime) : this.at_s;
  }

  stop(note) {
    const play = this.end(note);
    if (play) silence(play, this.context.currentTime);
  }

  /** Account for what plays; its sound goes on. */
  end(note) {
    const play = this.current;
    play?.remarks.add(note);
    if (play) this.finish(play);
    return play;
  }

  finish(play) {
    this.at_s = this.place_s;
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
    if (!play.loop) play.source.disconnect();
    this.on.ended(play.slot, {
      heard_ms: Math.round(1000 * heard_s),
      is_whole: isToTheEnd && !isFaster && !isAhead && !document.hidden, // nobody knows whether its end was heard
      remarks: [...play.remarks],
    });
  }
}

/** Let a part be repeated from a place on; all times fall on samples, so that the next recording can follow exactly. */
function repeat(play, { from, to }, at_s) {
  const { source, buffer, begin_s } = play;
  const { context } = source;
  const onSample = (time_s) => Math.round(time_s * context.sampleRate) / context.sampleRate;
  const end = onSample(Math.min(to, buffer.duration));
  play.loop = { from: onSample(Math.max(0, Math.min(from, end - SHORTEST_LOOP_S))), to: end };
  play.at_s = at_s >= play.loop.from && at_s < end ? onSample(at_s) : play.loop.from;
  Object.assign(source, { loop: true, loopStart: play.loop.from, loopEnd: end });
  play.gain = new GainNode(context, { gain: 0 });
  play.gain.gain.setValueAtTime(0, begin_s).linearRampToValueAtTime(1, begin_s + FADE_S);
  source.connect(play.gain).connect(context.destination);
}

function placeOf({ at_s = 0, begin_s, loop }, time_s) {
  const place_s = at_s + Math.max(0, time_s - begin_s);
  return loop && place_s >= loop.to ? loop.from + ((place_s - loop.from) % (loop.to - loop.from)) : place_s;
}

function silence({ source, gain }, at_s) {
  gain?.gain.cancelScheduledValues(at_s).setValueAtTime(1, at_s).linearRampToValueAtTime(0, at_s + FADE_S);
  source.stop(at_s + (gain ? FADE_S : 0));
}
