// A slider for each recording. None has a value before it was moved, and none can be moved before its recording was heard.

const MIDDLE = 50;

export function mount(root, trial, tools) {
  root.append(document.getElementById("form-of-trial").content.cloneNode(true));
  const group = root.querySelector("[data-task]");
  const slots = trial.samples.map(({ slot }) => slot);
  for (const row of root.querySelectorAll(".slider")) if (!slots.includes(row.dataset.slot)) row.remove();
  const rows = [...root.querySelectorAll(".slider")];
  const bands = [...root.querySelectorAll("[data-band]")].map((band) => band.textContent);
  const ratings = { ...tools.kept };

  const sliderOf = (row) => row.querySelector("input");
  const isRated = ({ dataset }) => dataset.slot in ratings;
  const isComplete = () => rows.every(isRated);
  const bandOf = (value) => bands[Math.min(bands.length - 1, Math.floor((value * bands.length) / 100))] ?? "";

  function refresh(row) {
    const value = ratings[row.dataset.slot];
    const slider = sliderOf(row);
    slider.value = value ?? MIDDLE;
    slider.toggleAttribute("data-unrated", !isRated(row));
    slider.ariaDisabled = String(!tools.heard(row.dataset.slot));
    slider.ariaValueText = isRated(row) ? [value, bandOf(value)].filter(Boolean).join(", ") : tools.word("not-rated");
    row.querySelector("[data-value]").textContent = isRated(row) ? `${value} ${bandOf(value)}` : tools.word("not-rated");
  }

  /** What moves a slider, or clicks on it where it stands, is its value. */
  function onMove({ target }) {
    const row = target.type === "range" && target.closest(".slider");
    if (!row) return;
    if (tools.heard(row.dataset.slot)) {
      ratings[row.dataset.slot] = target.valueAsNumber;
      tools.keep(ratings);
      tools.ready(isComplete());
    } else {
      tools.announce(tools.word("missing-heard", { slot: row.dataset.slot }));
    }
    refresh(row);
  }

  root.addEventListener("input", onMove);
  root.addEventListener("click", onMove);
  tools.on("change", () => rows.forEach(refresh));
  tools.ready(isComplete());

  return {
    answer: () => (isComplete() ? { answers: { [group.dataset.task]: ratings } } : null),
    missing: () => {
      const row = rows.find((one) => !isRated(one));
      return { element: row && sliderOf(row), sentence: tools.word("missing-slider", { slot: row?.dataset.slot }) };
    },
    focus: (slot) => rows.filter((row) => row.dataset.slot === slot).forEach((row) => sliderOf(row).focus()),
  };
}
