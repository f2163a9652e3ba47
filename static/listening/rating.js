// Ratings on the study's scale: one group of radio buttons a task, nothing chosen beforehand.
// Digits rate the question that has the focus, or else the first one without an answer; 0 stands for ten where no answer
// is 0, and a hyphen before a digit for an answer below 0.

import { keyOf } from "./trial.js";
import { announce, word } from "./words.js";

export function mount(page) {
  const { root, kept } = page;
  const groups = page.tasks.map((task) => root.querySelector(`fieldset[data-task="${task}"]`));
  root.replaceChildren(...groups);
  const again = [...root.querySelectorAll("button[data-play]")];

  let sign = ""; // of the digit that comes next
  const chosen = (group) => group.querySelector("input:checked");
  const ratings = () => {
    const rated = groups.filter(chosen).map((group) => [group.dataset.task, Number(chosen(group).value)]);
    return Object.fromEntries(rated);
  };
  const changed = () => page.changed(ratings());

  function onKey(event) {
    if (!page.hasKeys() || isElsewhere(event)) return;
    const group = event.target.closest?.("fieldset[data-task]") ?? groups.find((one) => !chosen(one)) ?? groups.at(-1);
    const find = (value) => group?.querySelector(`input[value="${value}"]`);
    const isSign = event.key === "-" && find(-1);
    const digit = isSign ? undefined : keyOf(event);
    const radio = /^\d$/.test(digit) && (find(Number(sign + digit)) ?? (digit === "0" && find(10)));
    if (event.key !== "Shift") sign = isSign ? "-" : "";
    if (!radio) return;
    event.preventDefault();
    radio.checked = true;
    // Within a scale the arrow keys go on from here; elsewhere the focus stays, and the next digit is for the next question.
    if (event.target.name === radio.name) radio.focus();
    group.scrollIntoView({ block: "nearest" });
    const said = word("rated", { n: radio.dataset.label ?? radio.value });
    announce(`${group.querySelector("legend").textContent} ${said}`);
    changed();
  }

  for (const button of again) button.addEventListener("click", () => page.play(button.dataset.play));
  for (const group of groups) {
    const radio = group.querySelector(`input[value="${kept?.[group.dataset.task]}"]`);
    if (radio) radio.checked = true;
  }
  root.addEventListener("change", changed);
  document.addEventListener("keydown", onKey);

  return {
    refresh: () => again.forEach((button) => (button.ariaDisabled = String(!page.canPlay(button.dataset.play)))),
    isComplete: () => groups.every(chosen),
    answer: () => ({ answers: ratings() }),
    missing: () => {
      const group = groups.find((one) => !chosen(one));
      return { element: group?.querySelector("input"), sentence: word("missing-rating") };
    },
    unmount: () => document.removeEventListener("keydown", onKey),
  };
}

function isElsewhere(event) {
  const isCommand = event.ctrlKey || event.metaKey || event.altKey;
  return isCommand || event.target.matches?.("textarea, select, input:not([type=radio], [type=checkbox], [type=range])");
}
