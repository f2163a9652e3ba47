// The board: voices that sound alike lie close together. What a drag does, taps, arrow keys and the list do as well.
// Coordinates run from 0 to 1, across from the left edge and down from the top one; on the screen from 0 to 100.

const MOVES_AT_MOST = 2000; // then counted only
const DRAG_FROM_PX = 6;
const EDGE = 0.15; // so far beside the board, a sample still lands at its edge
const TOKEN = ".board-token";
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const rounded = (value) => Math.round(1000 * Math.min(1, Math.max(0, value))) / 1000;
const shown = (value) => Math.round(1000 * value) / 10;

export function mount(root, trial, tools) {
  root.append(document.getElementById("form-of-trial").content.cloneNode(true));
  return new Board(root.firstElementChild, trial, tools);
}

class Board {
  constructor(root, trial, tools) {
    Object.assign(this, { root, tools, word: tools.word });
    this.part = (name) => root.querySelector(`[data-part="${name}"]`);
    this.dimensions = Number(root.dataset.dimensions);
    this.hasGroups = root.dataset.groups === "true";
    this.slots = trial.samples.map(({ slot }) => slot);
    this.kept = tools.kept ?? { samples: {}, moves: [], left_out: 0, speakers: "" };
    this.samples = this.kept.samples;
    this.tokens = {};
    this.rows = {};
    this.selected = null;
    this.build();
    this.listen();
    this.refresh();
  }

  build() {
    for (const slot of this.slots) {
      this.samples[slot] ??= { at: null, group: "", plays: 0 };
      const [token, row] = ["token", "row"].map((name) => this.part(name).content.firstElementChild.cloneNode(true));
      token.dataset.slot = row.dataset.slot = slot;
      token.querySelector("span").textContent = slot;
      row.querySelector("[data-name]").textContent = this.nameOf(slot);
      for (const input of row.querySelectorAll("[data-word]")) {
        input.ariaLabel = this.word(input.dataset.word, { n: slot });
      }
      this.tokens[slot] = token;
      this.rows[slot] = row;
      this.part("tray").append(token);
      this.part("list").append(row);
    }
    this.part("speakers").value = this.kept.speakers;
  }

  listen() {
    for (const kind of ["pointerdown", "pointermove", "pointerup", "pointercancel", "click", "keydown", "change"]) {
      this.root.addEventListener(kind, this);
    }
    new ResizeObserver(() => this.lay()).observe(this.part("map"));
    this.tools.on("start", () => this.refresh());
    this.tools.on("end", (slot, { isWhole }) => {
      if (!isWhole) return;
      this.samples[slot].plays += 1;
      this.changed();
    });
    this.tools.on("change", () => this.refresh());
  }

  handleEvent(event) {
    this[event.type](event);
  }

  refresh() {
    for (const slot of this.slots) {
      this.refreshToken(slot);
      this.refreshRow(slot);
    }
    this.lay();
    this.part("tray-box").hidden = this.slots.every((slot) => this.samples[slot].at);
    this.refreshSelected();
    const problems = this.problems();
    this.part("to-do").textContent = problems.map(({ sentence }) => sentence).join(" ");
    this.part("to-do").hidden = !this.kept.moves.length;
    this.tools.ready(problems.every(({ name }) => name === "to-hear"));
  }

  refreshToken(slot) {
    const token = this.tokens[slot];
    const { at, group } = this.samples[slot];
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
    token.style.setProperty("--x", at?.[0] ?? 0);
    token.style.setProperty("--y", at?.[1] ?? 0);
  }

  refreshRow(slot) {
    const row = this.rows[slot];
    const { at, group } = this.samples[slot];
    row.querySelector("button").ariaDisabled = String(!this.tools.canPlay(slot));
    row.querySelector("[data-state-words]").textContent = this.word(`is-${this.stateOf(slot)}`);
    if (this.hasGroups) row.querySelector("select").value = group;
    for (const input of row.querySelectorAll("input")) {
      if (document.activeElement !== input) input.value = at ? shown(at[input.dataset.axis]) : "";
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
    if (this.hasGroups) this.part("group").value = this.samples[slot].group;
  }

  /** On a line, samples that would cover one another stand in rows above it. */
  lay() {
    if (this.dimensions === 2) return;
    const size = this.tokens[this.slots[0]].offsetWidth;
    const share = size / Math.max(1, this.part("map").clientWidth - size);
    const ends = [];
    const placed = this.slots.filter((slot) => this.samples[slot].at);
    placed.sort((one, other) => this.samples[one].at[0] - this.samples[other].at[0]);
    for (const slot of placed) {
      const x = this.samples[slot].at[0];
      let row = ends.findIndex((end) => x - end >= share);
      if (row < 0) row = ends.push(0) - 1;
      ends[row] = x;
      this.tokens[slot].style.setProperty("--row", row);
    }
    this.part("map").style.setProperty("--rows", ends.length);
  }

  stateOf(slot) {
    if (this.tools.playing() === slot) return "playing";
    if (this.tools.heard(slot)) return "heard";
    return this.tools.canPlay(slot) ? "not-heard" : "loading";
  }

  nameOf(slot) {
    return this.word("sample", { n: slot });
  }

  described(slot) {
    const { at, group } = this.samples[slot];
    const place = at && this.word(`at-${this.dimensions}`, { x: shown(at[0]), y: shown(at[1] ?? 0) });
    const words = [place ?? this.word("aside"), group && this.word("in-group", { name: group })];
    return [...words, this.word(`is-${this.stateOf(slot)}`)].filter(Boolean);
  }

  place(slot, at, way) {
    const sample = this.samples[slot];
    const to = at.slice(0, this.dimensions).map(rounded);
    if (String(sample.at) === String(to)) return;
    const { moves } = this.kept;
    if (moves.length < MOVES_AT_MOST) moves.push({ slot, ms: this.tools.clock(), by: way, from: sample.at, to });
    else this.kept.left_out += 1;
    sample.at = to;
    this.changed();
    this.tools.announce(this.tokens[slot].ariaLabel);
  }

  assign(slot, group) {
    this.samples[slot].group = group;
    this.changed();
    const words = this.word(group ? "in-group" : "no-group", { name: group });
    this.tools.announce(`${this.nameOf(slot)}, ${words}`);
  }

  changed() {
    this.kept.speakers = this.part("speakers").value;
    this.tools.keep(this.kept);
    this.refresh();
  }

  click(event) {
    const { target } = event;
    if (target === this.part("map") && this.selected) {
      this.place(this.selected, this.under(event), "tap");
      this.tokens[this.selected].focus({ preventScroll: true });
    }
    const button = target.closest("button");
    if (!button || this.isDragged) return;
    this.selected = button.closest("[data-slot]")?.dataset.slot ?? this.selected;
    this.refresh();
    this.tools.play(this.selected);
  }

  change({ target }) {
    const slot = target.closest("[data-slot]")?.dataset.slot ?? this.selected;
    if (target === this.part("speakers")) this.changed();
    else if (target.matches(".board-group")) this.assign(slot, target.value);
    else if (target.dataset.axis) this.placeByNumber(slot, target);
  }

  /** A sample comes onto the board with its first number; the other one is the middle until it is given. */
  placeByNumber(slot, input) {
    if (!input.value) return this.refresh();
    const at = [...(this.samples[slot].at ?? [0.5, 0.5])];
    at[input.dataset.axis] = rounded(input.value / 100);
    input.value = shown(at[input.dataset.axis]);
    this.selected = slot;
    return this.place(slot, at, "list");
  }

  keydown(event) {
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault(); // not the end of the trial
      this.change(event);
    }
    const slot = event.target.closest(TOKEN)?.dataset.slot;
    if (!slot || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) {
      event.preventDefault();
      this.selected = slot;
      const [x, y = 0] = this.samples[slot].at ?? [];
      const share = event.shiftKey ? 0.01 : this.part("step").value / 100;
      const [across, down] = ARROWS[event.key];
      // The first one puts a sample into the middle.
      this.place(slot, x === undefined ? [0.5, 0.5] : [x + across * share, y + down * share], "keys");
    } else if (this.hasGroups && this.tools.keys() && /^[a-p]$/i.test(event.key)) {
      event.preventDefault();
      this.assign(slot, event.key.toUpperCase());
    }
  }

  /** Where on the board the pointer is: the middle of a sample that lies there. */
  under({ clientX, clientY }) {
    const map = this.part("map");
    const box = map.getBoundingClientRect();
    const size = this.tokens[this.slots[0]].offsetWidth;
    const share = (position, length) => (position - size / 2) / (length - size);
    const x = share(clientX - box.left - map.clientLeft, map.clientWidth);
    return [x, share(clientY - box.top - map.clientTop, map.clientHeight)];
  }

  pointerdown({ target, button, pointerId, clientX, clientY }) {
    const token = target.closest(TOKEN);
    this.drag = token && button === 0 ? { token, pointerId, clientX, clientY } : null;
    this.drag?.token.setPointerCapture(pointerId);
    this.isDragged = false;
  }

  pointermove({ pointerId, clientX, clientY }) {
    const { drag } = this;
    if (pointerId !== drag?.pointerId) return;
    const [dx, dy] = [clientX - drag.clientX, clientY - drag.clientY];
    if (!this.isDragged && Math.hypot(dx, dy) < DRAG_FROM_PX) return;
    this.isDragged = true;
    drag.token.classList.add("dragged");
    drag.token.style.translate = `${dx}px ${dy}px`;
  }

  /** Beside the board nothing happens: the sample goes back to where it was. */
  pointerup(event) {
    const { drag } = this;
    if (event.pointerId !== drag?.pointerId) return;
    this.drag = null;
    drag.token.classList.remove("dragged");
    drag.token.style.translate = "";
    if (!this.isDragged) return;
    setTimeout(() => (this.isDragged = false)); // after the click that may follow
    const at = this.under(event);
    if (event.type !== "pointerup" || at.some((value) => value < -EDGE || value > 1 + EDGE)) return;
    this.selected = drag.token.dataset.slot;
    this.place(this.selected, at, "drag");
  }

  pointercancel(event) {
    this.pointerup(event);
  }

  /** What is missing, in the order in which to fix it: a sentence and the element to go to. */
  problems() {
    const { samples, slots, hasGroups } = this;
    const problems = [];
    const tell = (name, element, values) => problems.push({ name, element, sentence: this.word(name, values) });
    for (const [name, part] of [["to-hear", "plays"], ["to-place", "at"], ...(hasGroups ? [["to-group", "group"]] : [])]) {
      const wanting = slots.filter((slot) => !samples[slot][part]);
      if (wanting.length) tell(name, this.tokens[wanting[0]], { names: wanting.join(", ") });
    }
    const speakers = this.part("speakers");
    const groups = new Set(slots.map((slot) => samples[slot].group)).size;
    if (!speakers.value) tell("to-count", speakers);
    else if (hasGroups && !problems.length && groups !== Number(speakers.value)) {
      tell("to-agree", speakers, { groups, speakers: speakers.value });
    }
    return problems;
  }

  missing() {
    return this.problems()[0];
  }

  answer() {
    if (this.problems().length) return null;
    return { board: { ...this.kept, speakers: Number(this.kept.speakers) } };
  }
}
