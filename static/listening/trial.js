// One page of a trial on the screen. What is begun is kept on this device at once: a reload or a crash loses nothing.

import { newKey } from "./connection.js";
import { tell } from "./screen.js";
import { announce, nameOf, part, word } from "./words.js";

const PLACES = "fieldset.question, .sample, .slider, .field, .board-tray, .board-map"; // beside which it says what is missing

export class Page {
  /**
   * `given`: trial, tasks, clips, player, store, mount (of the form's module), settings, events, keys, and `before`, the
   * playbacks on earlier pages of the same trial.
   */
  constructor(given) {
    Object.assign(this, given);
    this.samples = samplesOf(given.trial, given.tasks, given.settings);
    this.root = document.createElement("div");
    this.key = newKey();
    this.plays = [];
    this.kept = null;
    this.elapsed_ms = 0;
    this.isOver = false;
    this.restore();
    // Nothing can be answered before something was heard; of a board its own samples are heard.
    this.isOpen = !this.playerSlots().length || this.allPlays().some(({ heard_ms }) => heard_ms);
    this.shown_ms = performance.now();
  }

  restore() {
    const draft = this.store.read("draft");
    if (draft?.position !== this.trial.position || String(draft.tasks) !== String(this.tasks)) return;
    const { plays, before, kept, elapsed_ms } = draft;
    Object.assign(this, { plays, before, kept, elapsed_ms });
  }

  keep() {
    if (this.isOver) return;
    const { position } = this.trial;
    const { tasks, plays, before, kept } = this;
    this.store.write("draft", { position, tasks, plays, before, kept, elapsed_ms: this.clock_ms() });
  }

  /** In ms, without pauses and time away. */
  clock_ms() {
    return Math.round(this.elapsed_ms + (this.shown_ms === null ? 0 : performance.now() - this.shown_ms));
  }

  rest() {
    this.player.stop("stopped");
    this.elapsed_ms = this.clock_ms();
    this.shown_ms = null;
    this.keep();
  }

  goOn() {
    this.shown_ms ??= performance.now();
  }

  show() {
    this.clearMissing();
    this.showPlayers?.();
    part("form").replaceChildren(this.root);
    part("wrong").open = false;
    part("wrong-slot").replaceChildren(...this.samples.map(({ slot }) => new Option(nameOf(slot), slot)));
    part("wrong-what").value = "";
    part("wrong-missing").hidden = true;
    for (const { address } of this.samples) {
      this.clips.retryOnce(address);
      this.clips.need(address);
    }
    this.root.append(part("form-of-trial").content.cloneNode(true));
    this.form = this.mount(this);
    this.refresh();
    this.keep();
  }

  close() {
    this.isOver = true;
    this.player.stop("stopped");
    this.form?.unmount?.();
  }

  /** Those that are played outside of the form. */
  playerSlots() {
    return [];
  }

  /** Whether a key did something here. */
  onKey(event) {
    const slot = keyOf(event);
    const isPlayer = this.playerSlots().includes(slot);
    if (isPlayer) this.play(slot);
    return isPlayer;
  }

  refresh() {
    if (this.isOver) return;
    this.refreshPlayers?.();
    const broken = this.brokenSlot() !== undefined;
    part("broken").hidden = !broken;
    part("form").hidden = part("next").hidden = part("wrong").hidden = broken;
    part("players").hidden = broken || !part("players").children.length;
    part("next").ariaDisabled = String(!this.isComplete());
    part("form").disabled = !(part("first").hidden = this.isOpen);
    this.form?.refresh?.();
  }

  stateOf(slot) {
    const { player, clips } = this;
    const { address } = this.sample(slot);
    if (player.slot === slot) return "playing";
    if (clips.state(address) === "broken") return "broken";
    if (!clips.buffer(address)) return "loading";
    return this.mayPlay(slot) ? "ready" : "used-up";
  }

  sample(slot) {
    return this.samples.find((sample) => sample.slot === slot);
  }

  allPlays() {
    return [...this.before, ...this.plays];
  }

  heard(slot) {
    return this.allPlays().some((play) => play.slot === slot && play.is_whole);
  }

  /** Null without a limit. What broke off half-way does not count. */
  playsLeft(slot) {
    const { playsAtMost } = this.settings;
    if (playsAtMost === null) return null;
    const half_ms = 500 * this.sample(slot).seconds;
    const used = this.allPlays().filter((play) => play.slot === slot && play.heard_ms > half_ms).length;
    return Math.max(0, playsAtMost - used);
  }

  /** Nobody is locked out of a trial: what was never heard to its end may be played in any case. */
  mayPlay(slot) {
    return this.playsLeft(slot) !== 0 || !this.heard(slot);
  }

  play(slot) {
    const { player, clips } = this;
    const isLimited = this.settings.playsAtMost !== null;
    if (player.slot !== null && isLimited) return;
    if (player.slot === slot) return void player.stop("stopped");
    if (!this.isReadyToPlay(slot)) return;
    this.started_ms = this.clock_ms();
    player.play(slot, clips.buffer(this.sample(slot).address));
  }

  /** Whether it can be played; says why not. */
  isReadyToPlay(slot) {
    const state = this.stateOf(slot);
    if (state !== "ready") announce(word(state === "loading" ? "loading" : "no-play", { slot: nameOf(slot) }));
    return state === "ready";
  }

  onPlayStarted(slot) {
    announce(word("plays", { slot: nameOf(slot) }));
    this.refresh();
  }

  onPlayProgress() {
    if (!this.isOpen) {
      this.isOpen = true;
      this.refresh();
    }
  }

  onPlayEnded(slot, play) {
    this.isOpen ||= play.heard_ms > 0;
    this.plays.push({ slot, started_ms: this.started_ms, ...play });
    this.keep();
    if (play.is_whole) this.clearMissing();
    this.refresh();
    const name = { slot: nameOf(slot) };
    if (play.is_whole && !this.isOver) announce(word("ended", name));
    else if (document.hidden && !this.isOver) tell("ended-hidden", name);
  }

  retryBroken() {
    this.samples.forEach(({ address }) => this.clips.retry(address));
    part("trial-heading").focus();
  }

  brokenSlot() {
    return this.samples.find(({ address }) => this.clips.state(address) === "broken")?.slot;
  }

  unheard() {
    return this.samples.map(({ slot }) => slot).filter((slot) => !this.heard(slot));
  }

  isComplete() {
    return this.form?.isComplete() && !this.unheard().length;
  }

  answer() {
    return { ...this.form.answer(), client_ms: this.clock_ms(), plays: this.plays, events: this.events.take() };
  }

  tellMissing() {
    const [slot] = this.unheard();
    const button = this.buttonOf?.(slot);
    const ofForm = button ? null : this.form.missing();
    const sentence = button ? word("missing-heard", { slot: nameOf(slot) }) : ofForm?.sentence ?? word("missing-answer");
    this.clearMissing();
    const target = button ?? ofForm?.element;
    const place = target?.closest(PLACES);
    place?.setAttribute("data-missing", "");
    (place?.querySelector("legend") ?? place?.closest("#players") ?? place)?.after(part("missing"));
    part("missing").textContent = sentence;
    (button ? part("missing") : target)?.focus(); // Enter stays "next"
    target?.scrollIntoView({ block: "center" });
    announce(sentence);
  }

  clearMissing() {
    part("trial-form").querySelector("[data-missing]")?.removeAttribute("data-missing");
    part("missing").textContent = "";
    part("next").before(part("missing"));
  }

  /** The form holds other answers. */
  changed(kept) {
    this.kept = kept;
    this.clearMissing();
    this.keep();
    this.refresh();
  }

  canPlay(slot) {
    return ["ready", "playing"].includes(this.stateOf(slot));
  }

  hasKeys() {
    return this.keys.areOn && part("form").closest("[hidden]") === null && this.isOpen;
  }
}

/** The samples that these tasks need: all of them, or A where no task is about another one. */
export function samplesOf({ position, samples }, tasks, { alone }) {
  const isAlone = tasks.every((task) => alone.includes(task));
  return samples.filter(({ slot }) => !isAlone || slot === "a").map((sample) => ({ position, ...sample }));
}

/** The letter or digit of a key, by its place where the keyboard writes others. */
export function keyOf({ key, code }) {
  return /^[a-z\d]$/i.test(key) ? key.toLowerCase() : /^(?:Key|Digit|Numpad)(.)$/.exec(code)?.[1].toLowerCase();
}
