// A slider for each recording. None has a value before it was moved, and none can be moved before its recording was heard.

import { announce, word } from "./words.js";

const MIDDLE = 50;

export function mount(page) {
  const { root } = page;
  const group = root.querySelector("[data-task]");
  const slots = page.samples.map(({ slot }) => slot);
  for (const row of root.querySelectorAll(".slider")) if (!slots.includes(row.dataset.slot)) row.remove();
  const rows = [...root.querySelectorAll(".slider")];
  const bands = [...root.querySelectorAll("[data-band]")].map((band) => band.textContent);
  const ratings = { ...page.kept };

  const sliderOf = (row) => row.querySelector("input");
  const isRated = ({ dataset }) => dataset.slot in ratings;
  const bandOf = (value) => bands[Math.min(bands.length - 1, Math.floor((value * bands.length) / 100))] ?? "";

  function refresh(row) {
    const value = ratings[row.dataset.slot];
    const slider = sliderOf(row);
    slider.value = value ?? MIDDLE;
    slider.toggleAttribute("data-unrated", !isRated(row));
    slider.ariaDisabled = String(!page.heard(row.dataset.slot));
    slider.ariaValueText = isRated(row) ? [value, bandOf(value)].filter(Boolean).join(", ") : word("not-rated");
    row.querySelector("[data-value]").textContent = isRated(row) ? `${value} ${bandOf(value)}` : word("not-rated");
  }

  /** What moves a slider, or clicks on it where it stands, is its value. */
  function onMove({ target }) {
    const row = target.type === "range" && target.closest(".slider");
    if (!row) return;
    if (page.heard(row.dataset.slot)) {
      ratings[row.dataset.slot] = target.valueAsNumber;
      page.changed(ratings);
    } else {
      announce(word("missing-heard", { slot: row.dataset.slot }));
      refresh(row);
    }
  }

  root.addEventListener("input", onMove);
  root.addEventListener("click", onMove);

  return {
    refresh: () => rows.forEach(refresh),
    isComplete: () => rows.every(isRated),
    answer: () => ({ answers: { [group.dataset.task]: ratings } }),
    missing: () => {
      const row = rows.find((one) => !isRated(one));
      return { element: row && sliderOf(row), sentence: word("missing-slider", { slot: row?.dataset.slot }) };
    },
    focus: (slot) => rows.filter((row) => row.dataset.slot === slot).forEach((row) => sliderOf(row).focus()),
  };
}
