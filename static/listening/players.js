// The page of a trial whose recordings have a player each: a button, how far it has come, and whether it was heard.

import { Page as TrialPage } from "./trial.js";
import { nameOf, part, word } from "./words.js";

export class Page extends TrialPage {
  playerSlots() {
    return this.samples.map(({ slot }) => slot);
  }

  showPlayers() {
    part("players").replaceChildren(...this.playerSlots().map((slot) => this.makePlayer(slot)));
  }

  makePlayer(slot) {
    const element = part("player").content.firstElementChild.cloneNode(true);
    element.dataset.slot = slot;
    element.querySelector("button").addEventListener("click", () => this.play(slot));
    return element;
  }

  refreshPlayers() {
    for (const element of part("players").children) this.refreshPlayer(element);
  }

  refreshPlayer(element) {
    const { slot } = element.dataset;
    const state = this.stateOf(slot);
    const name = nameOf(slot);
    const button = element.querySelector("button");
    const left = this.playsLeft(slot);
    element.dataset.state = state;
    element.toggleAttribute("data-heard", this.heard(slot));
    button.ariaDisabled = String(!this.canPlay(slot) || (state === "playing" && left !== null));
    const label = { playing: left === null ? "stop" : "plays", ready: "play", loading: "loading" }[state] ?? "no-play";
    element.querySelector("[data-label]").textContent = word(label, { slot: name });
    const note = this.heard(slot) ? word("heard") : word("not-heard");
    const limit = left === null ? "" : ` · ${word("plays-left", { n: left })}`;
    element.querySelector("[data-note]").textContent = note + limit;
    if (state !== "playing") element.querySelector("progress").value = this.heard(slot) ? 1 : 0;
  }

  buttonOf(slot) {
    return part("players").querySelector(`[data-slot="${slot}"] button`);
  }

  onPlayProgress(slot, share) {
    super.onPlayProgress();
    const element = part("players").querySelector(`[data-slot="${slot}"] progress`);
    if (element) element.value = share;
  }
}
