// The page of a trial whose recordings are changed for one another: all stand at the same place, and one of them is heard.
// It is repeated, whole or in part, until it pauses. Of each recording a part is enough, in however many pieces.

import { Player as PlainPlayer } from "./player.js";
import { Page as TrialPage, keyOf } from "./trial.js";
import { announce, nameOf, part, word } from "./words.js";

const PART_S = 2; // of each recording has to be heard, or all of a shorter one
const SHORT_S = 0.05; // that is lost between two pieces
const SHORTEST_S = 0.3; // part that is repeated
const FADE_S = 0.008; // so that a change makes no click
const OWN_SPACE = "button, a, summary, select, input:not([type=range])"; // where the space key does something else

export class Page extends TrialPage {
  constructor(...given) {
    super(...given);
    this.isOpen ||= this.samples.some(({ slot }) => /\d/.test(slot)); // sliders open by themselves, one by one
    this.slot = this.samples[0].slot; // what plays or would play
    this.played_s = 0; // of it, since it began
  }

  playerSlots() {
    return this.samples.map(({ slot }) => slot);
  }

  showPlayers() {
    const length = Math.max(...this.samples.map(({ seconds }) => seconds));
    for (const name of ["at", "from", "until"]) part(name).max = length;
    part("at").value = part("from").value = 0;
    part("until").value = length;
    this.player.at_s = 0;
    part("repeat").open = false;
    part("toggle").onclick = () => this.play(this.slot);
    part("at").oninput = () => this.move(part("at").valueAsNumber);
    for (const name of ["from", "until"]) part(name).oninput = () => this.limit(name);
    part("trial-form").onclick = ({ target }) => target.dataset.hear && this.play(target.dataset.hear);
  }

  region() {
    return { from: part("from").valueAsNumber, to: part("until").valueAsNumber };
  }

  /** Keep the part that is repeated long enough to be heard, and begin it anew. */
  limit(name) {
    const { from, to } = this.region();
    if (name === "from") part("from").value = Math.min(from, to - SHORTEST_S);
    else part("until").value = Math.max(to, from + SHORTEST_S);
    this.move(this.region().from);
  }

  move(place_s) {
    const { player } = this;
    player.at_s = place_s;
    if (player.slot === null) this.showPlace();
    else this.begin(this.slot, place_s);
  }

  /** Begin it, change to it at the same place, or pause it. */
  play(slot) {
    const { player } = this;
    if (player.slot === slot) player.stop("stopped");
    else if (this.isReadyToPlay(slot)) this.begin(slot);
  }

  begin(slot, place_s) {
    const { player, clips } = this;
    player.play(slot, clips.buffer(this.sample(slot).address), this.region(), place_s);
  }

  playsLeft() {
    return null;
  }

  onKey(event) {
    if (event.key === " ") {
      if (event.target.closest(OWN_SPACE)) return false;
      this.play(this.slot);
      return true;
    }
    const digit = /^\d$/.exec(keyOf(event))?.[0];
    const slot = digit === "0" ? "10" : digit;
    if (!this.sample(slot)) return super.onKey(event);
    this.play(slot);
    this.form.focus(slot);
    return true;
  }

  onPlayStarted(slot) {
    this.slot = slot;
    this.pieces(slot);
    super.onPlayStarted(slot);
  }

  onPlayProgress(slot, share) {
    const wasHeard = this.heard(slot);
    this.played_s = share * this.sample(slot).seconds;
    super.onPlayProgress();
    this.showPlace();
    if (wasHeard || !this.heard(slot)) return;
    this.clearMissing();
    this.refresh();
  }

  onPlayEnded(slot, { heard_ms, remarks }) {
    const pieces = this.pieces(slot);
    this.played_s = 0;
    pieces.heard_ms += heard_ms;
    pieces.is_whole = pieces.heard_ms >= 1000 * (this.sample(slot).seconds - SHORT_S);
    pieces.remarks = [...new Set([...pieces.remarks, ...remarks])].filter((remark) => remark !== "stopped");
    this.isOpen ||= heard_ms > 0;
    this.keep();
    this.refresh();
    this.showPlace();
  }

  /** All playing of a recording, told as one play. */
  pieces(slot) {
    let play = this.plays.find((one) => one.slot === slot);
    if (!play) this.plays.push((play = { slot, started_ms: this.clock_ms(), heard_ms: 0, is_whole: false, remarks: [] }));
    return play;
  }

  heard(slot) {
    const before_ms = this.allPlays().reduce((sum, play) => sum + (play.slot === slot ? play.heard_ms : 0), 0);
    const played_s = before_ms / 1000 + (this.player.slot === slot ? this.played_s : 0);
    return played_s >= Math.min(PART_S, this.sample(slot).seconds) - SHORT_S;
  }

  showPlace() {
    const { place_s } = this.player;
    part("at").value = place_s;
    for (const name of ["at", "from", "until"]) part(name).ariaValueText = seconds(part(name).valueAsNumber);
  }

  refreshPlayers() {
    for (const button of part("trial-form").querySelectorAll("[data-hear]")) {
      const slot = button.dataset.hear;
      button.ariaPressed = String(this.stateOf(slot) === "playing");
      button.ariaDisabled = String(!this.canPlay(slot));
      button.toggleAttribute("data-heard", this.heard(slot));
    }
    const { slot } = this;
    const isPlaying = this.player.slot !== null;
    const toggle = part("toggle");
    toggle.ariaDisabled = String(!this.canPlay(slot));
    toggle.dataset.state = isPlaying ? "playing" : this.stateOf(slot);
    toggle.querySelector("[data-label]").textContent = word(isPlaying ? "pause" : "play", { slot: nameOf(slot) });
    const names = this.unheard().map(nameOf).join(", ");
    part("to-hear").textContent = names && word("to-hear", { names });
    this.showPlace();
  }

  buttonOf(slot) {
    return part("trial-form").querySelector(`[data-hear="${slot}"]`);
  }
}

function seconds(value) {
  const n = value.toLocaleString(document.documentElement.lang, { minimumFractionDigits: 1, maximumFractionDigits: 1 });
  return word("seconds", { n });
}

/** Repeats a part of a recording. The next one begins at the sample at which the one before it has faded out. */
export class Player extends PlainPlayer {
  at_s = 0; // where it stopped, from the beginning of the recording
  change = null;

  /** `region`: from and to of the part, in s; `at_s`: where it begins, the place reached if left out. */
  play(slot, buffer, region, at_s) {
    this.change = { region, at_s, before: this.current };
    super.play(slot, buffer);
    this.change = null;
  }

  start(play) {
    const { context } = this;
    const { region, at_s, before } = this.change;
    const onSample = (time_s) => Math.round(time_s * context.sampleRate) / context.sampleRate;
    const to = onSample(Math.min(region.to, play.buffer.duration));
    const from = onSample(Math.max(0, Math.min(region.from, to - SHORTEST_S)));
    play.begin_s = onSample(play.begin_s);
    const wanted_s = at_s ?? (before ? placeOf(before, play.begin_s) : this.at_s);
    Object.assign(play, { from, to, at_s: wanted_s >= from && wanted_s < to ? onSample(wanted_s) : from });
    Object.assign(play.source, { loop: true, loopStart: from, loopEnd: to });
    play.gain = new GainNode(context, { gain: 0 });
    play.gain.gain.setValueAtTime(0, play.begin_s).linearRampToValueAtTime(1, play.begin_s + FADE_S);
    play.source.connect(play.gain).connect(context.destination);
    play.source.start(play.begin_s, play.at_s);
    if (before) fade(before, play.begin_s);
  }

  silence(play) {
    if (!this.change) fade(play, this.context.currentTime);
  }

  finish(play) {
    this.at_s = this.place_s;
    super.finish(play);
  }

  heard_s({ begin_s }) {
    return Math.max(0, this.context.currentTime - begin_s);
  }

  get place_s() {
    return this.current ? placeOf(this.current, this.context.currentTime) : this.at_s;
  }
}

function placeOf({ at_s, begin_s, from, to }, time_s) {
  const place_s = at_s + Math.max(0, time_s - begin_s);
  return place_s < to ? place_s : from + ((place_s - from) % (to - from));
}

function fade({ source, gain }, at_s) {
  gain.gain.cancelScheduledValues(at_s).setValueAtTime(1, at_s).linearRampToValueAtTime(0, at_s + FADE_S);
  source.stop(at_s + FADE_S);
}
