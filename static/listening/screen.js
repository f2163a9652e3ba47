// What stands around the trial: its number, progress, time left, whether everything is saved, and the panel on show.

import { announce, part, word } from "./words.js";

let shownPanel = "";
let savedState = "";
let savedText = "";

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

/** Number of the trial and, where its questions stand on pages of their own, of the question. */
export function showPlace({ done, total, page, pages, place, isPractice }) {
  const trial = word(isPractice ? "practice" : "trial", place);
  part("trial-heading").textContent = pages > 1 ? `${trial} · ${word("question", { n: page, of: pages })}` : trial;
  part("done").max = total;
  part("done").value = done;
  part("practice").hidden = !isPractice;
}

export function showTimeLeft(seconds) {
  const minutes = Math.ceil(seconds / 60);
  part("time-left").textContent = minutes > 1 ? word("minutes-left", { n: minutes }) : word("minute-left");
}

/**
 * "saved", "saving", "kept" on this device, "unkept" where it cannot keep anything, "offline" with nothing to send, "" at first.
 * `isAway`: of the last three, the portal says that it is unavailable, and the connection is fine.
 */
export function showSaved(state, isAway = false) {
  const text = word(isAway ? `away-${state}` : state);
  if (state === savedState && text === savedText) return;
  const before = savedState;
  savedState = state;
  savedText = text;
  for (const element of document.querySelectorAll(".saved")) {
    element.dataset.state = state;
    element.textContent = text;
  }
  const isNews = state !== "saving" && before && !(state === "saved" && before === "offline");
  if (isNews) announce(text);
}

export function showNotice(name) {
  part("notice").hidden = !name;
  part("notice").textContent = name ? word(name) : "";
}

export function tell(name) {
  showNotice(name);
  announce(word(name));
}

export function onTap(name, act) {
  part(name).addEventListener("click", act);
}
