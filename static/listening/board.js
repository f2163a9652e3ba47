// The board: voices that sound alike lie close together. What a drag does, taps, arrow keys and the list do as well.
// Coordinates run from 0 to 1, across from the left edge and down from the top one; on the screen from 0 to 100.

import { announce, word } from "./words.js";

const MOVES_AT_MOST = 2000; // then counted only
const DRAG_FROM_PX = 6;
const EDGE = 0.15; // so far beside the board, a sample still lands at its edge
const TOKEN = ".board-token";
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const rounded = (value) => Math.round(1000 * Math.min(1, Math.max(0, value))) / 1000;
const shown = (value) => Math.round(1000 * value) / 10;

export function mount(page) {
  const root = page.root.firstElementChild;
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const dimensions = Number(root.dataset.dimensions);
  const hasGroups = root.dataset.groups === "true";
  const slots = page.samples.map(({ slot }) => slot);
  const kept = page.kept ?? { samples: {}, moves: [], left_out: 0, speakers: "" };
  const { samples } = kept;
  const tokens = {};
  const rows = {};
  let selected = null;
  let drag = null;
  let isDragged = false;

  function add(slot) {
    samples[slot] ??= { at: null, group: "" };
    const [token, row] = ["token", "row"].map((name) => part(name).content.firstElementChild.cloneNode(true));
    token.dataset.slot = row.dataset.slot = slot;
    token.querySelector("span").textContent = slot;
    row.querySelector("[data-name]").textContent = nameOf(slot);
    for (const input of row.querySelectorAll("[data-word]")) input.ariaLabel = word(input.dataset.word, { n: slot });
    tokens[slot] = token;
    rows[slot] = row;
    part("tray").append(token);
    part("list").append(row);
  }

  function refresh() {
    slots.forEach(refreshSample);
    lay();
    part("tray-box").hidden = slots.every((slot) => samples[slot].at);
    refreshSelected();
    part("to-do").textContent = problems().map(({ sentence }) => sentence).join(" ");
    part("to-do").hidden = !kept.moves.length;
  }

  function refreshSample(slot) {
    const [token, row, state] = [tokens[slot], rows[slot], stateOf(slot)];
    const { at, group } = samples[slot];
    token.ariaPressed = String(slot === selected);
    token.dataset.state = state;
    token.dataset.group = group;
    token.querySelector("small").textContent = group;
    token.ariaLabel = [nameOf(slot), ...described(slot)].join(", ");
    const home = part(at ? "map" : "tray");
    if (token.parentElement !== home) {
      const isFocused = document.activeElement === token;
      home.append(token);
      if (isFocused) token.focus();
    }
    token.style.setProperty("--x", at?.[0] ?? 0);
    token.style.setProperty("--y", at?.[1] ?? 0);
    row.querySelector("button").ariaDisabled = String(!page.canPlay(slot));
    row.querySelector("[data-state-words]").textContent = word(`is-${state}`);
    if (hasGroups) row.querySelector("select").value = group;
    for (const input of row.querySelectorAll("input")) {
      if (document.activeElement !== input) input.value = at ? shown(at[input.dataset.axis]) : "";
    }
  }

  function refreshSelected() {
    const slot = selected;
    part("selected").hidden = slot === null;
    if (slot === null) return;
    part("selected-words").textContent = nameOf(slot);
    part("selected-place").textContent = described(slot)[0];
    part("play").ariaDisabled = String(!page.canPlay(slot));
    part("play").textContent = word(stateOf(slot) === "playing" ? "stop-sample" : "play-sample");
    if (hasGroups) part("group").value = samples[slot].group;
  }

  /** On a line, samples that would cover one another stand in rows above it. */
  function lay() {
    if (dimensions === 2) return;
    const size = tokens[slots[0]].offsetWidth;
    const share = size / Math.max(1, part("map").clientWidth - size);
    const ends = [];
    const placed = slots.filter((slot) => samples[slot].at);
    placed.sort((one, other) => samples[one].at[0] - samples[other].at[0]);
    for (const slot of placed) {
      const x = samples[slot].at[0];
      let row = ends.findIndex((end) => x - end >= share);
      if (row < 0) row = ends.push(0) - 1;
      ends[row] = x;
      tokens[slot].style.setProperty("--row", row);
    }
    part("map").style.setProperty("--rows", ends.length);
  }

  function stateOf(slot) {
    const state = page.stateOf(slot);
    if (state === "playing") return state;
    if (page.heard(slot)) return "heard";
    return state === "ready" ? "not-heard" : "loading";
  }

  function nameOf(slot) {
    return word("sample", { n: slot });
  }

  function described(slot) {
    const { at, group } = samples[slot];
    const place = at && word(`at-${dimensions}`, { x: shown(at[0]), y: shown(at[1] ?? 0) });
    const words = [place ?? word("aside"), group && word("in-group", { name: group })];
    return [...words, word(`is-${stateOf(slot)}`)].filter(Boolean);
  }

  function place(slot, at, way) {
    const sample = samples[slot];
    const to = at.slice(0, dimensions).map(rounded);
    if (String(sample.at) === String(to)) return;
    const { moves } = kept;
    if (moves.length < MOVES_AT_MOST) moves.push({ slot, ms: page.clock_ms(), by: way, from: sample.at, to });
    else kept.left_out += 1;
    sample.at = to;
    changed();
    announce(tokens[slot].ariaLabel);
  }

  function assign(slot, group) {
    samples[slot].group = group;
    changed();
    const words = word(group ? "in-group" : "no-group", { name: group });
    announce(`${nameOf(slot)}, ${words}`);
  }

  function changed() {
    kept.speakers = part("speakers").value;
    page.changed(kept);
  }

  function click(event) {
    const { target } = event;
    if (target === part("map") && selected) {
      place(selected, under(event), "tap");
      tokens[selected].focus({ preventScroll: true });
    }
    const button = target.closest("button");
    if (!button || isDragged) return;
    selected = button.closest("[data-slot]")?.dataset.slot ?? selected;
    refresh();
    page.play(selected);
  }

  function change({ target }) {
    const slot = target.closest("[data-slot]")?.dataset.slot ?? selected;
    if (target === part("speakers")) changed();
    else if (target.matches(".board-group")) assign(slot, target.value);
    else if (target.dataset.axis) placeByNumber(slot, target);
  }

  /** A sample comes onto the board with its first number; the other one is the middle until it is given. */
  function placeByNumber(slot, input) {
    if (!input.value) return refresh();
    const at = [...(samples[slot].at ?? [0.5, 0.5])];
    at[input.dataset.axis] = rounded(input.value / 100);
    input.value = shown(at[input.dataset.axis]);
    selected = slot;
    return place(slot, at, "list");
  }

  function keydown(event) {
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault(); // not the end of the trial
      change(event);
    }
    const slot = event.target.closest(TOKEN)?.dataset.slot;
    if (!slot || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key in ARROWS) {
      event.preventDefault();
      selected = slot;
      const [x, y = 0] = samples[slot].at ?? [];
      const share = event.shiftKey ? 0.01 : part("step").value / 100;
      const [across, down] = ARROWS[event.key];
      // The first one puts a sample into the middle.
      place(slot, x === undefined ? [0.5, 0.5] : [x + across * share, y + down * share], "keys");
    } else if (hasGroups && page.hasKeys() && /^[a-p]$/i.test(event.key)) {
      event.preventDefault();
      assign(slot, event.key.toUpperCase());
    }
  }

  /** Where on the board the pointer is: the middle of a sample that lies there. */
  function under({ clientX, clientY }) {
    const map = part("map");
    const box = map.getBoundingClientRect();
    const size = tokens[slots[0]].offsetWidth;
    const share = (position, length) => (position - size / 2) / (length - size);
    const x = share(clientX - box.left - map.clientLeft, map.clientWidth);
    return [x, share(clientY - box.top - map.clientTop, map.clientHeight)];
  }

  function pointerdown({ target, button, pointerId, clientX, clientY }) {
    const token = target.closest(TOKEN);
    drag = token && button === 0 ? { token, pointerId, clientX, clientY } : null;
    drag?.token.setPointerCapture(pointerId);
    isDragged = false;
  }

  function pointermove({ pointerId, clientX, clientY }) {
    if (pointerId !== drag?.pointerId) return;
    const [dx, dy] = [clientX - drag.clientX, clientY - drag.clientY];
    if (!isDragged && Math.hypot(dx, dy) < DRAG_FROM_PX) return;
    isDragged = true;
    drag.token.classList.add("dragged");
    drag.token.style.translate = `${dx}px ${dy}px`;
  }

  /** Beside the board nothing happens: the sample goes back to where it was. */
  function pointerup(event) {
    if (event.pointerId !== drag?.pointerId) return;
    const { token } = drag;
    drag = null;
    token.classList.remove("dragged");
    token.style.translate = "";
    if (!isDragged) return;
    setTimeout(() => (isDragged = false)); // after the click that may follow
    const at = under(event);
    if (event.type !== "pointerup" || at.some((value) => value < -EDGE || value > 1 + EDGE)) return;
    selected = token.dataset.slot;
    place(selected, at, "drag");
  }

  /** What is missing, in the order in which to fix it: a sentence and the element to go to. */
  function problems() {
    const problems = [];
    const tell = (name, element, values) => problems.push({ element, sentence: word(name, values) });
    const tellMissing = (name, isThere) => {
      const names = slots.filter((slot) => !isThere(slot));
      if (names.length) tell(name, tokens[names[0]], { names: names.join(", ") });
    };
    tellMissing("to-hear", (slot) => page.heard(slot));
    tellMissing("to-place", (slot) => samples[slot].at);
    if (hasGroups) tellMissing("to-group", (slot) => samples[slot].group);
    const speakers = part("speakers");
    const groups = new Set(slots.map((slot) => samples[slot].group)).size;
    if (!speakers.value) tell("to-count", speakers);
    else if (hasGroups && !problems.length && groups !== Number(speakers.value)) {
      tell("to-agree", speakers, { groups, speakers: speakers.value });
    }
    return problems;
  }

  function answer() {
    const plays = page.allPlays().filter((play) => play.is_whole);
    const countOf = (slot) => plays.filter((play) => play.slot === slot).length;
    const told = slots.map((slot) => [slot, { ...samples[slot], plays: countOf(slot) }]);
    return { board: { ...kept, samples: Object.fromEntries(told), speakers: Number(kept.speakers) } };
  }

  slots.forEach(add);
  part("speakers").value = kept.speakers;
  const listeners = { pointerdown, pointermove, pointerup, pointercancel: pointerup, click, keydown, change };
  for (const [kind, listener] of Object.entries(listeners)) root.addEventListener(kind, listener);
  new ResizeObserver(lay).observe(part("map"));

  return { refresh, isComplete: () => !problems().length, answer, missing: () => problems()[0] };
}
