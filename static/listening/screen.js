// What stands around the trial: its number, progress, time left, whether everything is saved, and the panel on show.

import { announce, part, word } from "./words.js";

let shownPanel = "";
let savedState = "";

/** Show one panel; its heading gets the focus, so that a screen reader begins there. */
export function showPanel(name) {
  for (const panel of document.querySelectorAll("#trials > section")) panel.hidden = panel.id !== `${name}-panel`;
  part("pause").hidden = name !== "trial";
  if (shownPanel || name !== "connecting") {
    scrollTo(0, 0);
    part(`${name}-heading`).focus({ preventScroll: true });
  }
  shownPanel = name;
}

/** Number of the trial and, on pages of their own, of the question. */
export function showPlace({ done, total, page, pages, place, isPractice }) {
  const trial = word(isPractice ? "practice" : "trial", place);
  part("trial-heading").textContent = pages > 1 ? `${trial} · ${word("question", { n: page, of: pages })}` : trial;
  part("done").max = total;
  part("done").value = done;
  part("practice").hidden = !isPractice;
}

/** The usual time times the geometric mean of the own paces and half a usual one; none counts as more than threefold. */
export function timeLeft_s({ left_s, paces }) {
  const product = paces.reduce((all, pace) => all * Math.min(3, Math.max(1 / 3, pace)), 1);
  return left_s * product ** (1 / (paces.length + 0.5));
}

export function showTimeLeft(seconds) {
  const minutes = Math.ceil(seconds / 60);
  part("time-left").textContent = minutes > 1 ? word("minutes-left", { n: minutes }) : word("minute-left");
}

/** "saved", "saving", "kept", "unkept" where nothing can be kept, "offline" with nothing to send; `isAway`: while maintained. */
export function showSaved(state, isAway = false) {
  const text = word(isAway ? `away-${state}` : state);
  if (part("saved").textContent === text) return;
  const before = savedState;
  savedState = state;
  for (const element of document.querySelectorAll(".saved")) {
    element.dataset.state = state;
    element.toggleAttribute("data-away", isAway);
    element.textContent = text;
  }
  const isNews = state !== "saving" && before && !(state === "saved" && before === "offline");
  if (isNews) announce(text);
}

export function showNotice(name, values) {
  part("notice").hidden = !name;
  part("notice").textContent = name ? word(name, values) : "";
}

export function tell(name, values) {
  showNotice(name, values);
  announce(word(name, values));
}
