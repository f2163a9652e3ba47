// The board: voices that sound alike lie close together. What a drag does, taps, arrow keys and the list do as well.
// Coordinates run from 0 to 1, across from the left edge and down from the top one; on the screen from 0 to 100.

const MOVES_AT_MOST = 2000; // then counted only
const GROUPS = "ABCDEFGHIJKLMNOP";
const DRAG_FROM_PX = 6;
const EDGE = 0.15; // so far beside the board, a sample still lands at its edge
const TOKEN = ".board-token";
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const rounded = (value) => Math.round(1000 * Math.min(1, Math.max(0, value))) / 1000;
const shown = (value) => Math.round(1000 * value) / 10;

export function mount(root, trial, tools) {
  root.append(document.getElementById("form-of-trial").content.cloneNode(true));
  const board = new Board(root.firstElementChild, trial, tools);
  return {
    answer: () => board.answer(),
    missing: () => board.problems()[0],
    unmount: () => board.stopped.abort(),
  };
}

class Board {
  constructor(root, trial, tools) {
    Object.assign(this, { root, tools, word: tools.word });
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.dimensions = Number(root.dataset.dimensions);
    this.hasGroups = root.dataset.groups === "true";
    this.slots = trial.samples.map(({ slot }) => slot);
    const kept = tools.kept ?? { samples: {}, moves: [], leftOut: 0, speakers: "" };
    this.moves = kept.moves;
    this.leftOut = kept.leftOut;
    this.samples = new Map(this.slots.map((slot) => [slot, { at: null, group: "", plays: 0, ...kept.samples[slot] }]));
    this.selected = null;
    this.stopped = new AbortController();
    this.build(kept.speakers);
    this.listen();
    this.refresh();
  }

  build(speakers) {
    this.tokens = new Map();
    this.rows = new Map();
    for (const slot of this.slots) {
      const [token, row] = ["token", "row"].map((name) => this.part(name).content.firstElementChild.cloneNode(true));
      token.dataset.slot = row.dataset.slot = slot;
      token.querySelector("span").textContent = slot;
      row.querySelector("[data-name]").textContent = this.nameOf(slot);
      for (const input of row.querySelectorAll("input, select, button")) {
        input.setAttribute("aria-label", this.word(input.dataset.word, { n: slot }));
      }
      fillGroups(row.querySelector("select"));
      this.tokens.set(slot, token);
      this.rows.set(slot, row);
    }
    this.part("tray").append(...this.tokens.values());
    this.part("list").append(...this.rows.values());
    fillGroups(this.part("group"));
    this.part("speakers").append(...this.slots.map((_, index) => new Option(index + 1, index + 1)));
    this.part("speakers").value = speakers;
  }

  listen() {
    const on = (target, kind, act) => target.addEventListener(kind, act, { signal: this.stopped.signal });
    const { root } = this;
    on(root, "pointerdown", (event) => this.onDown(event));
    on(globalThis, "pointermove", (event) => this.onMove(event));
    for (const kind of ["pointerup", "pointercancel"]) on(globalThis, kind, (event) => this.onUp(event));
    on(root, "click", (event) => this.onClick(event));
    on(root, "keydown", (event) => this.onKey(event));
    on(root, "change", (event) => this.onChange(event));
    on(globalThis, "resize", () => this.lay());
    this.tools.on("start", () => this.refresh());
    this.tools.on("end", (slot, { isWhole }) => isWhole && this.onHeard(slot));
    this.tools.on("change", () => this.refresh());
  }

  refresh() {
    if (this.stopped.signal.aborted) return;
    for (const slot of this.slots) {
      this.refreshToken(slot);
      this.refreshRow(slot);
    }
    this.lay();
    const left = this.slots.filter((slot) => !this.samples.get(slot).at).length;
    this.part("tray-box").hidden = !left;
    this.refreshSelected();
    this.part("to-do").textContent = this.problems().map(({ sentence }) => sentence).join(" ");
    this.part("to-do").hidden = !this.moves.length;
    this.tools.ready(!this.problems().some(({ isHearing }) => !isHearing));
  }

  refreshToken(slot) {
    const token = this.tokens.get(slot);
    const { at, group } = this.samples.get(slot);
    token.ariaPressed = String(slot === this.selected);
    token.dataset.state = this.stateOf(slot);
    token.dataset.group = group;
    token.querySelector("small").textContent = group;
    token.ariaLabel = [this.nameOf(slot), ...this.described(slot)].join(", ");
    const home = this.part(at ? "map" : "tray");
    if (token.parentElement !== home) {
      const isFocused = document.activeElement === token;
      home.append(token);
      if (isFocused) token.focus();
    }
    token.style.setProperty("--x", at ? at[0] : 0);
    token.style.setProperty("--y", at?.[1] ?? 0);
  }

  refreshRow(slot) {
    const row = this.rows.get(slot);
    const { at, group } = this.samples.get(slot);
    row.querySelector("button").ariaDisabled = String(!this.tools.canPlay(slot));
    row.querySelector("[data-state-words]").textContent = this.word(`is-${this.stateOf(slot)}`);
    if (this.hasGroups) row.querySelector("select").value = group;
    for (const input of row.querySelectorAll("input")) {
      if (document.activeElement !== input) input.value = at ? shown(at[Number(input.dataset.axis)]) : "";
    }
  }

  refreshSelected() {
    const slot = this.selected;
    this.part("selected").hidden = slot === null;
    if (slot === null) return;
    this.part("selected-words").textContent = this.nameOf(slot);
    this.part("selected-place").textContent = this.described(slot)[0];
    this.part("play").ariaDisabled = String(!this.tools.canPlay(slot));
    this.part("play").textContent = this.word(this.tools.playing() === slot ? "stop-sample" : "play-sample");
    if (this.hasGroups) this.part("group").value = this.samples.get(slot).group;
  }

  /** On a line, samples that would cover one another stand in rows above it. */
  lay() {
    if (this.dimensions === 2) return;
    const size = this.tokens.get(this.slots[0]).offsetWidth;
    const share = size / Math.max(1, this.part("map").clientWidth - size);
    const ends = [];
    const placed = this.slots.filter((slot) => this.samples.get(slot).at);
    placed.sort((one, other) => this.samples.get(one).at[0] - this.samples.get(other).at[0]);
    for (const slot of placed) {
      const x = this.samples.get(slot).at[0];
      let row = ends.findIndex((end) => x - end >= share);
      if (row < 0) row = ends.push(0) - 1;
      ends[row] = x;
      this.tokens.get(slot).style.setProperty("--row", row);
    }
    this.part("map").style.setProperty("--rows", ends.length);
  }

  /** "playing", "loading", "heard" or "not-heard". */
  stateOf(slot) {
    if (this.tools.playing() === slot) return "playing";
    if (this.tools.heard(slot)) return "heard";
    return this.tools.canPlay(slot) ? "not-heard" : "loading";
  }

  nameOf(slot) {
    return this.word("sample", { n: slot });
  }

  described(slot) {
    const { at, group } = this.samples.get(slot);
    const place = at && this.word(`at-${this.dimensions}`, { x: shown(at[0]), y: shown(at[1] ?? 0) });
    const words = [place ?? this.word("aside"), group && this.word("in-group", { name: group })];
    return [...words, this.word(`is-${this.stateOf(slot)}`)].filter(Boolean);
  }

  place(slot, at, way) {
    const sample = this.samples.get(slot);
    const to = at.slice(0, this.dimensions).map(rounded);
    if (sample.at && String(sample.at) === String(to)) return;
    const move = { slot, ms: this.tools.clock(), by: way, from: sample.at, to };
    if (this.moves.length < MOVES_AT_MOST) this.moves.push(move);
    else this.leftOut += 1;
    sample.at = to;
    this.changed();
    this.tools.announce(this.tokens.get(slot).ariaLabel);
  }

  assign(slot, group) {
    this.samples.get(slot).group = group;
    this.changed();
    const words = this.word(group ? "in-group" : "no-group", { name: group });
    this.tools.announce(`${this.nameOf(slot)}, ${words}`);
  }

  kept() {
    return { samples: Object.fromEntries(this.samples), moves: this.moves, speakers: this.part("speakers").value };
  }

  changed() {
    this.tools.keep({ ...this.kept(), leftOut: this.leftOut });
    this.refresh();
  }

  onHeard(slot) {
    if (this.stopped.signal.aborted) return;
    this.samples.get(slot).plays += 1;
    this.changed();
  }

  onClick(event) {
    const { target } = event;
    if (target === this.part("map") && this.selected) {
      this.place(this.selected, this.under(event), "tap");
      this.tokens.get(this.selected).focus({ preventScroll: true });
    }
    const button = target.closest("button");
    if (!button || this.isDragged) return;
    this.selected = button.closest("[data-slot]")?.dataset.slot ?? this.selected;
    this.refresh();
    this.tools.play(this.selected);
  }

  onChange({ target }) {
    const slot = target.closest("[data-slot]")?.dataset.slot ?? this.selected;
    if (target === this.part("speakers")) this.changed();
    else if (target.matches(".board-group")) this.assign(slot, target.value);
    else if (target.matches("input[data-axis]")) this.onNumber(slot, target);
  }

  /** A sample comes onto the board with its first number; the other one is the middle until it is given. */
  onNumber(slot, input) {
    const value = Number(input.value);
    if (input.value === "" || !Number.isFinite(value)) return this.refresh();
    const at = [...(this.samples.get(slot).at ?? [0.5, 0.5])];
    at[Number(input.dataset.axis)] = value / 100;
    input.value = shown(rounded(value / 100));
    this.selected = slot;
    return this.place(slot, at, "list");
  }

  onKey(event) {
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault(); // not the end of the trial
      this.onChange(event);
    }
    const slot = event.target.closest(TOKEN)?.dataset.slot;
    if (!slot || event.ctrlKey || event.metaKey || event.altKey) return;
    const arrow = ARROWS[event.key];
    const letter = event.key.toUpperCase();
    if (arrow) {
      event.preventDefault();
      this.selected = slot;
      this.step(slot, arrow, event.shiftKey ? 0.01 : this.part("step").value / 100);
    } else if (this.hasGroups && this.tools.keys() && letter.length === 1 && GROUPS.includes(letter)) {
      event.preventDefault();
      this.assign(slot, letter);
    }
  }

  /** The first arrow key puts a sample into the middle. */
  step(slot, [across, down], share) {
    const [x, y = 0] = this.samples.get(slot).at ?? [];
    this.place(slot, x === undefined ? [0.5, 0.5] : [x + across * share, y + down * share], "keys");
  }

  /** Where on the board the pointer is: the middle of a sample that lies there. */
  under({ clientX, clientY }) {
    const map = this.part("map");
    const box = map.getBoundingClientRect();
    const size = this.tokens.get(this.slots[0]).offsetWidth;
    const share = (position, length) => (position - size / 2) / (length - size);
    const x = share(clientX - box.left - map.clientLeft, map.clientWidth);
    return [x, share(clientY - box.top - map.clientTop, map.clientHeight)];
  }

  onDown({ target, button, pointerId, clientX, clientY }) {
    const token = target.closest(TOKEN);
    this.drag = token && button === 0 ? { token, pointerId, clientX, clientY } : null;
    this.isDragged = false;
  }

  onMove({ pointerId, clientX, clientY }) {
    const { drag } = this;
    if (pointerId !== drag?.pointerId) return;
    const [dx, dy] = [clientX - drag.clientX, clientY - drag.clientY];
    if (!this.isDragged && Math.hypot(dx, dy) < DRAG_FROM_PX) return;
    if (!this.isDragged) drag.token.setPointerCapture(pointerId);
    this.isDragged = true;
    drag.token.classList.add("dragged");
    drag.token.style.setProperty("--dx", `${dx}px`);
    drag.token.style.setProperty("--dy", `${dy}px`);
  }

  /** Beside the board nothing happens: the sample goes back to where it was. */
  onUp(event) {
    const { drag } = this;
    if (event.pointerId !== drag?.pointerId) return;
    this.drag = null;
    drag.token.classList.remove("dragged");
    if (!this.isDragged) return;
    setTimeout(() => (this.isDragged = false)); // after the click that may follow
    const at = this.under(event);
    if (event.type !== "pointerup" || at.some((value) => value < -EDGE || value > 1 + EDGE)) return;
    this.selected = drag.token.dataset.slot;
    this.place(this.selected, at, "drag");
  }

  /** What is missing, in the order in which to fix it: a sentence and the element to go to. */
  problems() {
    const { tools, samples, slots } = this;
    const problems = [];
    const tell = (wanting, name, more = {}) => {
      if (!wanting.length) return;
      const sentence = tools.word(name, { names: wanting.join(", ") });
      problems.push({ sentence, element: this.tokens.get(wanting[0]), ...more });
    };
    tell(slots.filter((slot) => !samples.get(slot).plays), "to-hear", { isHearing: true });
    tell(slots.filter((slot) => !samples.get(slot).at), "to-place");
    if (this.hasGroups) tell(slots.filter((slot) => !samples.get(slot).group), "to-group");
    const { value } = this.part("speakers");
    const drawn = new Set([...samples.values()].map(({ group }) => group)).size;
    if (!value) problems.push({ sentence: tools.word("to-count"), element: this.part("speakers") });
    else if (this.hasGroups && !problems.length && drawn !== Number(value)) {
      const sentence = tools.word("to-agree", { groups: drawn, speakers: value });
      problems.push({ sentence, element: this.part("speakers") });
    }
    return problems;
  }

  answer() {
    if (this.problems().length) return null;
    const kept = this.kept();
    return { board: { ...kept, speakers: Number(kept.speakers), left_out: this.leftOut } };
  }
}

function fillGroups(select) {
  select?.append(...[...GROUPS].map((letter) => new Option(letter, letter)));
}
