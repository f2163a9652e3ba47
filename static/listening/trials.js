// The trials of a session, a page each. Answers are sent while the next trial is on the screen.

import { Clips } from "./clips.js";
import { Connection } from "./connection.js";
import { Player } from "./player.js";
import { Queue } from "./queue.js";
import { showNotice, showPanel, showPlace, showSaved, showTimeLeft, tell, timeLeft_s } from "./screen.js";
import { Store } from "./store.js";
import { samplesOf } from "./trial.js";
import { part } from "./words.js";

const CONNECT_AGAIN_MS = [1000, 2000, 4000]; // then every 8 s
const MOST_EVENTS = 150; // that wait to be told

const { dataset } = part("trials"); // with the addresses

const store = new Store(dataset.session);
// Pages and plays as the portal tells them; `alone`: tasks for which sample A alone is heard.
const settings = { alone: dataset.alone.split(" "), pages: "", playsAtMost: null };
let Page = null; // of its module
let player = null; // of the same one, or a plain one
let mount = null;
let known = []; // trials that the portal told, in order, the next one first
let progress = { done: 0, total: 0 };
let effort = { left_s: 0, paces: [] }; // usual time of the rest; times of own trials over the usual
let spent_ms = 0; // on the earlier pages of a trial
let page = null;
let isAnswered = false;
let changed_ms = -Infinity; // when a trial was sent off or skipped
let isBeginning = false;
let isReporting = false;
let isLeaving = false;

// Told with the next answer or heartbeat
const events = {
  list: [],
  add(kind, data = {}) {
    if (events.list.length < MOST_EVENTS) events.list.push({ kind, ms: page?.clock_ms() ?? 0, data });
  },
  take: () => events.list.splice(0),
};

const keys = {
  areOn: store.read("keys") !== false,
  set(areOn) {
    keys.areOn = areOn;
    store.write("keys", areOn);
    events.add("shortcuts", { on: areOn });
  },
};

const connection = new Connection(dataset, {
  reached: (isReached) => {
    if (isReached && queue.failures) queue.wake();
    showConnection(isReached);
  },
  other: freeze,
  ended: leave,
  events: events.take,
  returned: (list) => events.list.unshift(...list),
});

const queue = new Queue(store, connection, {
  changed: () => showConnection(!queue.failures),
  saved: (entry, reply) => take(reply),
  refused: onRefused,
});

const clips = new Clips(() => connection.answers(), {
  changed: () => page?.refresh(),
  failed: ({ position, slot, attempt }, why) => events.add("clip-retry", { position, slot, why, attempt }),
});

const onPlay = {
  started: (slot) => page?.onPlayStarted(slot),
  progress: (slot, share) => page?.onPlayProgress(slot, share),
  ended: (slot, play) => page?.onPlayEnded(slot, play),
  silent: (state) => {
    events.add("audio-trouble", { state });
    tell("no-sound");
  },
  event: events.add,
};

function showConnection(isReached) {
  const { state } = queue;
  const { isAway } = connection;
  if (state === "kept") showSaved(queue.isKept === false ? "unkept" : "kept", isAway);
  else if (!isReached && state === "saved") showSaved("offline", isAway);
  else if (queue.isStopped) return; // before it is open, nobody knows what this device kept
  else showSaved(state === "saved" && !isAnswered ? "" : state);
}

/** The tasks of a trial that neither the portal has nor an answer on its way. */
function tasksLeft(trial) {
  const sent = queue.tasksOf(trial.position);
  return trial.tasks.filter((task) => !(task in trial.answered) && !sent.includes(task));
}

function upcoming() {
  return known.filter((trial) => tasksLeft(trial).length);
}

/** What the portal said comes next; an end is an address to go to. */
function take(reply) {
  if (reply.address) return void leave(reply.address);
  if (reply.ahead) known = reply.ahead;
  if (reply.done !== undefined) progress.done = reply.done;
  if (page && !page.isOver) prefetch();
  else advance();
}

function prefetch() {
  clips.want(upcoming().slice(0, 3).flatMap((trial) => samplesOf(trial, pageTasks(trial), settings)));
}

function pageTasks(trial) {
  const left = tasksLeft(trial);
  return settings.pages === "separate" ? left.slice(0, 1) : left;
}

/** With what the portal does not have yet. */
function doneHere() {
  return progress.done + known.length - upcoming().length;
}

function advance() {
  const [trial] = upcoming();
  if (!trial) return void wait();
  const before = page?.trial.position === trial.position ? page.allPlays() : [];
  page?.close();
  page = new Page({ clips, player, store, mount, settings, events, keys, trial, tasks: pageTasks(trial), before });
  const pages = settings.pages === "separate" ? trial.tasks.length : 1;
  const place = { pages, page: trial.tasks.indexOf(page.tasks[0]) + 1, place: trial.place, isPractice: trial.is_practice };
  showPlace({ ...progress, ...place, done: doneHere() });
  showTimeLeft(timeLeft_s(effort));
  prefetch();
  page.show();
  showPanel("trial");
}

/** All that is here is answered. */
function wait() {
  page?.close();
  page = null;
  prefetch();
  showPanel("waiting");
  if (!queue.entries.length) setTimeout(() => !page && !queue.isStopped && !queue.entries.length && begin(), 3000);
}

function submit(body) {
  const { tasks, trial } = page;
  const { position } = trial;
  effort.left_s -= (trial.usual_s * tasks.length) / trial.tasks.length;
  spent_ms += body.client_ms;
  close();
  showNotice("");
  isAnswered = true;
  navigator.serviceWorker?.register("offline.js").catch(() => {}); // not offered in every frame
  queue.add({ position, tasks, body: { position, ...body } });
  if (!tasksLeft(trial).length) {
    if (!trial.is_practice) effort.paces.push(spent_ms / 1000 / trial.usual_s);
    spent_ms = 0;
  }
  advance();
  showRight(trial, body.answers ?? {});
}

/** Of a practice trial, where it is known: over the next trial. */
function showRight({ right = {} }, answers) {
  const [given] = Object.entries(answers).filter(([task]) => task in right);
  if (!given) return;
  const [number, label] = right[given[0]];
  tell(given[1] === number ? "right" : "wrong", { label });
}

function close() {
  page.close();
  store.remove("draft");
  changed_ms = performance.now();
}

function isTwice() {
  return performance.now() < changed_ms + 500;
}

function next() {
  if (page?.isComplete()) submit(page.answer());
  else if (!isTwice()) page?.tellMissing();
}

/** An answer is refused; one that the portal has already is as good as saved. */
async function onRefused(entry, status, body) {
  events.add("refused", { position: entry.position, status, problem: body.problem ?? "" });
  if (body.problem === "locked") {
    const trial = known.find(({ position }) => position === entry.position);
    entry.tasks.forEach((task) => trial && (trial.answered[task] ??= null));
    return page ? prefetch() : advance();
  }
  tell("refused");
  return begin();
}

/** A recording fails: skip its trial, or only say so. */
async function report(isSkip, slot, what) {
  if (isReporting || isTwice()) return;
  isReporting = true;
  const reported = page;
  const { key, trial } = reported;
  const told = { position: trial.position, slot, what, skip: isSkip, key: isSkip ? key : `${key}-${slot}-${what}` };
  try {
    const { status, body } = await connection.post("report", told);
    if (status !== 200) return void (connection.active && (await begin()));
    part("wrong").open = false;
    if (!isSkip) return void tell("noted");
    reported.samples.forEach(({ address }) => clips.forget(address));
    if (page === reported) {
      close();
      spent_ms = 0;
    }
    tell("skipped");
    take(body);
  } catch {
    tell("unsent");
  } finally {
    isReporting = false;
  }
}

function reportSound(isSkip) {
  const what = part("wrong-what");
  part("wrong-missing").hidden = !!what.value;
  if (what.value) report(isSkip, part("wrong-slot").value, what.value);
  else what.focus();
}

/** Ask where the session stands, as the tab that writes, and go on there. */
async function begin() {
  if (isBeginning) return;
  isBeginning = true;
  page?.rest();
  page?.close();
  page = null;
  showPanel("connecting");
  let state;
  for (let tries = 0; state === undefined; tries += 1) {
    try {
      state = await connection.takeOver();
    } catch {
      part("connecting-words").hidden = false;
      await new Promise((resolve) => setTimeout(resolve, CONNECT_AGAIN_MS[tries] ?? 8000));
    }
  }
  isBeginning = false;
  if (state) open(state);
}

function open(state) {
  if (state.state !== "active" || state.step !== "trials") return void leave(dataset.session);
  Object.assign(settings, { pages: state.pages, playsAtMost: state.plays_at_most });
  known = state.trials;
  progress = { done: state.done, total: state.total };
  effort = state.effort;
  spent_ms = 0;
  isAnswered ||= state.done > 0 || known.some(({ answered }) => Object.keys(answered).length);
  queue.open();
  isAnswered ||= queue.entries.length > 0;
  advance();
  if (store.read("paused") && page) rest();
}

function freeze() {
  if (isLeaving || part("frozen-panel").hidden === false) return;
  connection.active = false;
  queue.close();
  page?.close(); // what it kept is the other tab's now
  page = null;
  clips.want([]);
  showPanel("frozen");
}

/** What is kept here goes only where the portal said that the session is over. */
function leave(address, isTold = true) {
  if (isLeaving) return;
  isLeaving = true;
  connection.active = false;
  queue.close();
  player?.stop("stopped");
  if (isTold) ["queue", "draft", "paused"].forEach((name) => store.remove(name));
  location.replace(address);
}

function pause() {
  events.add("pause");
  store.write("paused", true);
  rest();
}

function rest() {
  page?.rest();
  showPanel("paused");
}

function resume() {
  events.add("resume");
  store.remove("paused");
  page?.goOn();
  if (page) showPanel("trial");
  else advance();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !keys.areOn) return;
  if (!page || part("trial-panel").hidden || event.target.matches?.("textarea, select, input[type=text]")) return;
  if (event.key.length === 1 && event.key !== " " && event.target.matches?.("summary")) event.target.blur();
  if (event.key === "Enter") {
    if (!event.target.closest?.("button, a, summary, #trial-form input")) next();
    return;
  }
  if (page.onKey(event)) event.preventDefault();
}

function listen() {
  part("pause").onclick = pause;
  part("resume").onclick = resume;
  part("here").onclick = () => (store.remove("paused"), begin());
  part("retry").onclick = () => page?.retryBroken();
  part("skip").onclick = () => report(true, page.brokenSlot(), "clip");
  part("wrong-what").onchange = () => (part("wrong-missing").hidden = true);
  part("wrong-tell").onclick = () => reportSound(false);
  part("wrong-skip").onclick = () => reportSound(true);
  part("trial-form").addEventListener("submit", (event) => {
    event.preventDefault();
    next();
  });
  part("keys").checked = keys.areOn;
  part("keys").onchange = ({ target }) => keys.set(target.checked);
  document.addEventListener("keydown", onKey);
  document.addEventListener("visibilitychange", () => {
    events.add(document.hidden ? "hidden" : "visible");
    page?.keep();
  });
  for (const kind of ["online", "offline"]) {
    addEventListener(kind, () => {
      events.add(kind);
      showConnection(kind === "online");
    });
  }
  addEventListener("pagehide", () => {
    player?.stop("stopped");
    page?.keep();
  });
  addEventListener("pageshow", ({ persisted }) => persisted && begin());
  addEventListener("beforeunload", (event) => {
    if (connection.active && queue.entries.length) event.preventDefault();
  });
}

async function start() {
  listen();
  const module = await import(dataset.page);
  Page = module.Page;
  player = new (module.Player ?? Player)(onPlay);
  ({ mount } = await import(dataset.module));
  await begin();
}

start();
