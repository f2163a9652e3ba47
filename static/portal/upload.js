// Sends an archive of a submission, a corpus or own recordings by tus: progress, pause, and going on after a reload, a broken connection or a restart of the portal.
// A file is known by the SHA-256 of its content: the portal says what it has of that, and refuses what turns out to be another.

import { sha256 as startHash } from "../vendor/js-sha256/sha256-1.0.0.min.mjs"; // the browser's own takes only what fits into memory

const form = document.getElementById("upload");
const panel = document.getElementById("sending");
const part = (name) => document.getElementById(name);
const SEND = part("send")?.textContent;
const token = form?.querySelector("[name=csrfmiddlewaretoken]").value;

const PART_BYTES = 64 * 2 ** 20;
const PIECE_BYTES = 2 ** 20; // the page answers between two of them
const RETRY_MS = [0, 500, 1000, 2000, 3000, 5000, 10000, 15000, 20000, ...Array(2 * 60 * 24).fill(30000)]; // for a day
const ASK_AGAIN_MS = [200, 1000, 3000, 6000];
const RATE_OVER_MS = 8000;
const LOOK_EVERY_MS = 1000;
const WAITING = { 423: "An earlier connection is still closing.", 503: "The portal is busy or under maintenance." };
const BY_ITSELF = "The upload goes on by itself.";
const ARRIVED_BUT_OFFLINE =
  "Everything has arrived, but the portal cannot be reached just now. Its answer follows once the connection is back; you may also close this page and look later.";
const UNREADABLE = "The file has changed or cannot be read. Choose it again.";
const ARRIVED_BUT_LOGGED_OUT = "Everything has arrived, but you are no longer logged in. Log in and open this page again to see what became of it.";
const CHANGED_AND_KEPT =
  "The file has changed. What was sent of it before could not be discarded and may have been submitted: look at your submissions. This one is sent from its beginning.";
const CHANGED = "The file has changed: what was sent of it before is discarded; this one is sent from its beginning.";
const MISSING = "The file is no longer there. Choose it again.";
const WORDS = { reading: "reading", running: "sending", waiting: "waiting", paused: "paused", failed: "stopped", succeeded: "received" };

let upload = null; // of tus
let state = "";
let wasHere = false; // whether the portal had this content, or a part of it, before
let mayBeginAnew = true; // once, where the portal has lost what was sent
let stopped = null; // address, name and hash of what was being sent when its file could not be read
let lookedAt = 0;
let samples = []; // [time, bytes] of the last seconds
const hashes = new WeakMap(); // of files that were read

// Words ---------------------------------------------------------------------------------------------

function size(bytes) {
  for (const [unit, of] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (bytes >= of) return `${(bytes / of).toFixed(1).replace(/\.0$/, "")} ${unit}`;
  }
  return `${bytes} byte${bytes === 1 ? "" : "s"}`;
}

function enter(next, words = "") {
  state = next;
  const badge = part("sending-state");
  badge.dataset.state = { paused: "waiting", reading: "running" }[next] ?? next;
  badge.textContent = WORDS[next];
  part("sending-words").textContent = words;
  part("pause").hidden = next === "reading";
  part("pause").textContent = next === "running" || next === "waiting" ? "Pause" : "Go on";
  if (next !== "running") part("sending-rate").textContent = "";
  if (next !== "failed") part("sending-error").hidden = true;
}

function fail(sentence) {
  enter("failed");
  part("sending-error").textContent = sentence;
  part("sending-error").hidden = false;
}

function showProgress(sent, total) {
  part("sending-bar").value = sent / total;
  part("sending-bytes").textContent = `${size(sent)} of ${size(total)}`;
  const now = performance.now();
  samples.push([now, sent]);
  samples = samples.filter(([time]) => now - time < RATE_OVER_MS);
  const [since, before] = samples[0];
  const rate = (1000 * (sent - before)) / (now - since);
  const steady = state === "running" && now - since > 1000 && rate > 0;
  part("sending-rate").textContent = steady ? `${size(Math.round(rate))}/s · ${Math.ceil((total - sent) / rate / 60)} min left` : "";
}

// The file and what is known of it ---------------------------------------------------------------------

function chosenSystem() {
  return form.querySelector("[name=system]:checked");
}

function checkFile(file) {
  const name = file.name.toLowerCase();
  if (!form.dataset.endings.split(",").some((ending) => name.endsWith(ending))) {
    return `“${file.name}” is not a supported archive. ${part("file-help").textContent}`;
  }
  if (!file.size) return `“${file.name}” is empty.`;
  if (file.size > Number(form.dataset.largest)) return `“${file.name}” has ${size(file.size)}. ${part("file-help").textContent}`;
  return "";
}

function unfinishedOf(file) {
  const items = [...document.querySelectorAll("[data-unfinished][data-state=receiving]")];
  return items.filter((item) => item.dataset.name === file.name && Number(item.dataset.size) === file.size);
}

// A request to the portal as tus has it.
function ask(method, address, headers = {}) {
  return fetch(address, { method, headers: { Accept: "application/json", "X-CSRFToken": token, "Tus-Resumable": "1.0.0", ...headers } });
}

async function refusalOf(answer) {
  const { detail } = await answer.json().catch(() => ({}));
  return Object.assign(new Error(String(answer.status)), { status: answer.status, sentence: detail });
}

// Where the portal says why it does not tell, the error has its `sentence`.
async function stateOf(address) {
  const answer = await ask("GET", address);
  if (answer.ok) return answer.json();
  throw await refusalOf(answer);
}

// Why a file cannot be read as it was chosen; empty where it can.
function whyUnreadable(file) {
  return file.slice(0, 1).arrayBuffer().then(() => "", sentenceOfFile);
}

function sentenceOfFile(error) {
  return error.name === "NotFoundError" ? MISSING : UNREADABLE;
}

// What the portal has of this content, which may be nothing yet: a line that breaks just now must not end what has not begun.
async function begin(file, sha256) {
  const said = Object.entries({ ...metadata(file), sha256 }).map(([key, text]) => `${key} ${inBase64(text)}`);
  const headers = { "Upload-Length": String(file.size), "Upload-Metadata": said.join(",") };
  for (const wait of [...ASK_AGAIN_MS, null]) {
    let error;
    try {
      const answer = form.dataset.announce ? await announce(file, sha256) : await ask("POST", form.dataset.endpoint, headers);
      const address = answer.headers.get("Location");
      if (answer.ok && address) return { address, isNew: answer.status === 201 };
      error = answer.redirected ? { status: 401, sentence: "" } : await refusalOf(answer);
    } catch {
      error = { status: 0, sentence: "" };
    }
    if (wait === null || !mayHelp(error.status)) throw error;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

// Of a form whose fields are too many for headers: the whole of it but for the file.
function announce(file, sha256) {
  const body = new FormData(form);
  body.delete(part("file").name);
  for (const [name, value] of Object.entries({ file_name: file.name, size: file.size, sha256 })) body.set(name, value);
  return fetch(form.dataset.announce, { method: "POST", body, headers: { Accept: "application/json", "X-CSRFToken": token } });
}

function inBase64(text) {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

// A sentence on unfinished uploads of this name, which somebody may be sending. Their content is another where it is known.
function sayOther(file, address) {
  const named = [...document.querySelectorAll("[data-unfinished][data-state=receiving]")].filter((item) => item.dataset.name === file.name);
  const others = named.filter((item) => item.dataset.unfinished !== address && item.dataset.sha256 !== hashes.get(file));
  if (!others.length) return "";
  const what = others.every((item) => item.dataset.sha256) ? "is of another file" : "may be of another file";
  return `What is here of “${file.name}” ${what} and is kept; this one is sent from its beginning. Discard the other if it is no longer needed.`;
}

// Another one can be discarded while this one is sent, without leaving the page.
async function discardBeside(event) {
  const item = event.target.closest("[data-unfinished]");
  if (!item || !event.target.dataset.sure || panel.hidden) return;
  event.preventDefault();
  const answer = await ask("DELETE", item.dataset.unfinished).catch(() => null);
  if (answer?.ok || answer?.status === 410) item.remove();
  else part("sending-words").textContent = (answer && (await refusalOf(answer)).sentence) || sentenceFor(answer?.status ?? 0);
}

// Sending -----------------------------------------------------------------------------------------------

function metadata(file) {
  const system = chosenSystem();
  if (form.dataset.announce) return {};
  if (!system) {
    const { csrfmiddlewaretoken, name, ...options } = Object.fromEntries(new FormData(form));
    return Object.fromEntries(Object.entries({ filename: file.name, corpus: name, ...options }).filter(([, value]) => value));
  }
  const said = {
    filename: file.name,
    edition: form.dataset.edition,
    team: form.dataset.team,
    system: system.value,
    system_kind: system.value ? "" : system.dataset.kind,
    system_title: system.value ? "" : part("title").value.trim(),
  };
  return Object.fromEntries(Object.entries(said).filter(([, value]) => value));
}

function statusOf(error) {
  return error.originalResponse?.getStatus() ?? 0;
}

function sentenceOf(error) {
  return sentenceFor(statusOf(error), detailOf(error));
}

function sentenceFor(status, detail) {
  if (status === 401) return "You are no longer logged in. Log in again and choose the same file: the upload goes on.";
  if (status === 404 || status === 410) return "This upload is no longer here. Load the page again and choose the file again.";
  if (detail) return detail;
  if (status) return `The portal answered with an error (${status}). Continue in a moment; what has arrived is kept.`;
  return "The portal cannot be reached. Check your connection and go on; what has arrived is kept.";
}

function mayHelp(status) {
  return status === 0 || [409, 423, 429].includes(status) || (status >= 500 && status !== 507);
}

function mayRetry(error) {
  const status = statusOf(error);
  const may = mayHelp(status);
  if (may) wait(status, status >= 500 ? detailOf(error) : "");
  return may;
}

function detailOf(error) {
  try {
    return JSON.parse(error.originalResponse.getBody()).detail;
  } catch {
    return "";
  }
}

// An answer may hold no reason, or be lost with a connection that the portal closes on a part that it does not take.
async function wait(status, detail) {
  if (status === 0 && (await stopIfUnreadable())) return;
  const isLost = status === 0 || status >= 500;
  if (state !== "waiting" || !isLost || detail) {
    enter("waiting", `${detail || WAITING[status] || "The connection broke off."} ${BY_ITSELF}`);
  }
  if (detail || !isLost || !upload.url) return;
  const sentence = await stateOf(upload.url).then(() => "", (error) => error.sentence);
  if (sentence && state === "waiting") part("sending-words").textContent = `${sentence} ${BY_ITSELF}`;
}

// Whether what was sent is of use still is known when the file is chosen again: its time may have changed alone.
async function stopIfUnreadable() {
  const why = await whyUnreadable(upload.file);
  if (!why || state === "succeeded" || !state) return Boolean(why);
  stopped = { address: upload.url, name: upload.file.name, sha256: hashes.get(upload.file) };
  await upload.abort();
  chooseAgain(why);
  return true;
}

// Once a second: a browser may go on with what it finds in a file that is written anew while it is sent.
function lookAtFile() {
  const now = performance.now();
  if (now - lookedAt < LOOK_EVERY_MS) return;
  lookedAt = now;
  stopIfUnreadable();
}

function discard(address) {
  return ask("DELETE", address).catch(() => {});
}

// What was sent before of a file that has changed; what became of it in words, where there was any.
async function discardStopped(file, sha256) {
  const before = stopped;
  stopped = null;
  if (before?.name !== file.name || before.sha256 === sha256) return "";
  return (await discard(before.address))?.ok ? CHANGED : CHANGED_AND_KEPT;
}

async function onEnd() {
  enter("succeeded", "Everything has arrived.");
  leaveFreely();
  for (const name of ["sending-actions", "sending-stay"]) part(name).hidden = true;
  let known = null;
  for (let tries = 0; !known; tries += 1) {
    try {
      known = await stateOf(upload.url);
    } catch (error) {
      if ([401, 403].includes(error.status)) return void (part("sending-words").textContent = ARRIVED_BUT_LOGGED_OUT);
      if (tries) part("sending-words").textContent = ARRIVED_BUT_OFFLINE;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
  if (known.state === "refused" && wasHere) {
    const answer = await ask("POST", `${upload.url}/submit`).catch(() => null);
    if (answer?.ok) known = await answer.json();
  }
  const made = known.submission ?? known.job;
  if (made) location.assign(made.address);
  else location.reload();
}

async function onFailure(error) {
  samples = [];
  const known = await stateOf(upload.url).catch(() => null);
  if (known?.state === "refused" || known?.state === "complete") return onEnd();
  if (![404, 410].includes(statusOf(error))) return fail(sentenceOf(error));
  await discard(upload.url); // its content would lead to it again
  return mayBeginAnew ? beginAnew() : fail(sentenceOf(error));
}

async function beginAnew() {
  let begun;
  try {
    begun = await begin(upload.file, hashes.get(upload.file));
  } catch (error) {
    return fail(sentenceFor(error.status, error.sentence));
  }
  mayBeginAnew = false;
  const isPaused = state === "paused";
  prepare(upload.file, begun);
  if (isPaused) return;
  enter("running", "What was sent is no longer here. The file is sent again from its beginning.");
  upload.start();
}

// The form once more, with the sentence why nothing is sent.
function changeAndSendAgain(sentence) {
  leaveFreely();
  state = "";
  panel.hidden = true;
  form.hidden = false;
  sayOfFile(sentence);
  part(form.dataset.announce ? "file" : "send").focus(); // where the sentence is in sight
}

function chooseAgain(sentence) {
  part("file").value = "";
  part("send").textContent = SEND;
  changeAndSendAgain(sentence);
  part("file").focus();
}

function stay(event) {
  event.preventDefault();
}

function leaveFreely() {
  removeEventListener("beforeunload", stay);
}

function prepare(file, { address, isNew }) {
  wasHere = !isNew;
  part("cancel").action = form.dataset.discard.replace(form.dataset.noUpload, address.split("/").pop());
  upload = new tus.Upload(file, {
    uploadUrl: address,
    headers: { "X-CSRFToken": token },
    chunkSize: PART_BYTES,
    retryDelays: RETRY_MS,
    storeFingerprintForResuming: false,
    onShouldRetry: mayRetry,
    onProgress: (sent, total) => {
      if (state === "waiting" && sent < total) enter("running");
      showProgress(sent, total);
      lookAtFile();
    },
    onSuccess: onEnd,
    onError: onFailure,
  });
}

async function hashShown(file) {
  if (hashes.has(file)) return hashes.get(file);
  enter("reading", "The file is read first, so that the portal knows it again.");
  const digest = startHash.create();
  for (let start = 0; start < file.size; start += PIECE_BYTES) {
    digest.update(await file.slice(start, start + PIECE_BYTES).arrayBuffer());
    showProgress(Math.min(file.size, start + PIECE_BYTES), file.size);
  }
  const sha256 = digest.hex();
  samples = [];
  hashes.set(file, sha256);
  return sha256;
}

async function send(file) {
  form.hidden = true;
  panel.hidden = false;
  part("cancel").hidden = true;
  part("sending-name").textContent = file.name;
  let sha256;
  try {
    sha256 = await hashShown(file);
  } catch (error) {
    return chooseAgain(sentenceOfFile(error));
  }
  const changed = await discardStopped(file, sha256);
  let begun;
  try {
    begun = await begin(file, sha256);
  } catch (error) {
    return changeAndSendAgain(sentenceFor(error.status, error.sentence));
  }
  mayBeginAnew = true;
  prepare(file, begun);
  part("cancel").hidden = false;
  addEventListener("beforeunload", stay);
  enter("running", wasHere ? "The upload continues where it stopped." : changed || sayOther(file, begun.address));
  document.querySelectorAll("[data-unfinished]").forEach((item) => (item.hidden = item.dataset.unfinished === begun.address));
  upload.start();
  part("pause").focus();
}

function sayOfFile(words, isProblem = true) {
  part("file-words").className = isProblem ? "errorlist" : "help";
  part("file-words").textContent = words;
}

function sayWhatFileIs() {
  const file = part("file").files[0];
  const problem = file ? checkFile(file) : "";
  part("file").setCustomValidity(problem);
  const begun = file && !problem ? unfinishedOf(file) : [];
  part("send").textContent = begun.length ? "Go on" : SEND;
  if (begun.length === 1) chooseSystemOf(begun[0]);
  const here = begun.length ? "A part of a file of this name and size is here. If it is this file, the upload goes on from there." : "";
  sayOfFile(problem || here, Boolean(problem));
}

// What has begun for a system goes on for it, unless another is chosen then.
function chooseSystemOf(begun) {
  const choice = [...form.querySelectorAll("[name=system]")].find((one) => isFor(begun, one));
  if (!choice) return;
  choice.checked = true;
  part("title").value ||= begun.dataset.title;
  showTitleForNew();
}

function isFor({ dataset }, choice) {
  return choice.value === dataset.system && (choice.value || choice.dataset.kind === dataset.kind);
}

function showTitleForNew() {
  part("title-field").hidden = Boolean(chosenSystem().value);
  part("title").required = !chosenSystem().value && !form.dataset.team;
}

if (form) {
  form.hidden = false;
  if (chosenSystem()) form.addEventListener("change", showTitleForNew);
  part("file").addEventListener("change", sayWhatFileIs);
  if (chosenSystem()) showTitleForNew();
  form.addEventListener("submit", (event) => {
    const [file] = part("file").files;
    if (!file) return; // none is needed, or the portal says so
    event.preventDefault();
    part("send").disabled = true;
    send(file).finally(() => (part("send").disabled = false));
  });
  part("pause").addEventListener("click", async () => {
    if (state === "running" || state === "waiting") {
      await upload.abort();
      enter("paused", "What has arrived is kept.");
      samples = [];
    } else if (!(await stopIfUnreadable())) {
      enter("running");
      upload.start();
    }
  });
  part("cancel").addEventListener("submit", () => {
    if (!part("cancel").dataset.sure) return; // it is just being asked
    leaveFreely();
    upload.abort();
  });
  document.addEventListener("submit", discardBeside);
  addEventListener("online", () => {
    if (state === "failed" && upload) part("pause").click();
  });
}
