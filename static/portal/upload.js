// Sends an archive of a submission or a corpus by tus: progress, pause, and going on after a reload, a broken connection or a restart of the portal.
// How much has arrived is the portal's to say; what this browser remembers only helps to know a file again.

const form = document.getElementById("upload");
const panel = document.getElementById("sending");
const part = (name) => document.getElementById(name);
const token = form?.querySelector("[name=csrfmiddlewaretoken]").value;

const PART_BYTES = 64 * 2 ** 20;
const RETRY_MS = [0, 500, 1000, 2000, 3000, 5000, 10000, 15000, 20000, ...Array(2 * 60 * 24).fill(30000)]; // for a day
const ASK_AGAIN_MS = [200, 1000, 3000, 6000];
const RATE_OVER_MS = 8000;
const WAITING = { 423: "An earlier connection is still closing.", 503: "The portal is busy or under maintenance." };
const BY_ITSELF = "The upload goes on by itself.";
const ARRIVED_BUT_OFFLINE =
  "Everything has arrived, but the portal cannot be reached just now. Its answer follows once the connection is back; you may also close this page and look later.";
const WORDS = { running: "sending", waiting: "waiting", paused: "paused", failed: "stopped", succeeded: "received" };

let upload = null; // of tus
let state = "";
let samples = []; // [time, bytes] of the last seconds

// Words ---------------------------------------------------------------------------------------------

function size(bytes) {
  for (const [unit, of] of [["GB", 1e9], ["MB", 1e6], ["kB", 1e3]]) {
    if (bytes >= of) return `${(bytes / of).toFixed(1).replace(/\.0$/, "")} ${unit}`;
  }
  return `${bytes} byte${bytes === 1 ? "" : "s"}`;
}

function roughly(seconds) {
  if (seconds < 5) return "a few seconds";
  if (seconds < 58) return `about ${5 * Math.round(seconds / 5)} s`;
  if (seconds < 90 * 60) return `about ${Math.max(1, Math.round(seconds / 60))} min`;
  return `about ${Math.round(seconds / 3600)} h`;
}

function enter(next, words = "") {
  state = next;
  const badge = part("sending-state");
  badge.dataset.state = { paused: "waiting" }[next] ?? next;
  badge.textContent = WORDS[next];
  part("sending-words").textContent = words;
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
  const steady = now - since > 1000 && rate > 0;
  part("sending-rate").textContent = steady ? `${size(Math.round(rate))}/s · ${roughly((total - sent) / rate)} left` : "";
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

// Where the portal says why it does not tell, the error has its `sentence`.
async function stateOf(address) {
  const answer = await fetch(address, { headers: { Accept: "application/json" } });
  if (answer.ok) return answer.json();
  const { detail } = await answer.json().catch(() => ({}));
  throw Object.assign(new Error(String(answer.status)), { sentence: detail });
}

// The state as soon as the portal tells it: a line that breaks just now must not end what has not begun.
async function stateAtLast(address) {
  for (const wait of ASK_AGAIN_MS) {
    try {
      return await stateOf(address);
    } catch {
      await new Promise((resolve) => setTimeout(resolve, wait));
    }
  }
  return stateOf(address);
}

// Whether what the portal holds ends as this file does there; true where the browser cannot tell.
async function isSameFile(file, address) {
  const { offset, tail } = await stateAtLast(address);
  if (!tail || !crypto.subtle) return true;
  const bytes = await file.slice(offset - tail.bytes, offset).arrayBuffer();
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return tail.sha256 === [...digest].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

// The unfinished upload of this file: the one that this browser began, or else one of the same name, size and content.
async function earlierUpload(file, tried) {
  const remembered = (await tried.findPreviousUploads()).map((one) => new URL(one.uploadUrl, location.href).pathname);
  const items = unfinishedOf(file).map((item) => item.dataset.unfinished);
  items.sort((one, other) => remembered.includes(other) - remembered.includes(one));
  for (const address of items) {
    if (await isSameFile(file, address)) return address;
  }
  return null;
}

// Sending -----------------------------------------------------------------------------------------------

function metadata(file) {
  const system = chosenSystem();
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
  const status = statusOf(error);
  if (status === 401) return "You are no longer logged in. Log in again and choose the same file: the upload goes on.";
  if (status === 404 || status === 410) return "This upload is no longer here. Load the page again and choose the file again.";
  const detail = detailOf(error);
  if (detail) return detail;
  if (status) return `The portal answered with an error (${status}). Continue in a moment; what has arrived is kept.`;
  return "The portal cannot be reached. Check your connection and go on; what has arrived is kept.";
}

function mayRetry(error) {
  const status = statusOf(error);
  const may = status === 0 || [409, 423, 429].includes(status) || (status >= 500 && status !== 507);
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
  const isLost = status === 0 || status >= 500;
  if (state !== "waiting" || !isLost || detail) {
    enter("waiting", `${detail || WAITING[status] || "The connection broke off."} ${BY_ITSELF}`);
  }
  if (detail || !isLost || !upload.url) return;
  const sentence = await stateOf(upload.url).then(() => "", (error) => error.sentence);
  if (sentence && state === "waiting") part("sending-words").textContent = `${sentence} ${BY_ITSELF}`;
}

function onceKnown() {
  // From here on a portal that is just restarting must not make tus begin again.
  upload.options.endpoint = null;
  const identity = new URL(upload.url, location.href).pathname.split("/").pop();
  part("cancel").action = form.dataset.discard.replace(form.dataset.noUpload, identity);
  part("cancel").hidden = false;
}

async function onEnd() {
  enter("succeeded", "Everything has arrived.");
  leaveFreely();
  for (const name of ["sending-actions", "sending-stay"]) part(name).hidden = true;
  let known = null;
  for (let tries = 0; !known; tries += 1) {
    known = await stateOf(upload.url).catch(() => new Promise((resolve) => setTimeout(resolve, 1000)));
    if (!known && tries) part("sending-words").textContent = ARRIVED_BUT_OFFLINE;
  }
  const made = known?.submission ?? known?.job;
  if (made) location.assign(made.address);
  else location.reload();
}

async function onFailure(error) {
  samples = [];
  const known = upload.url && (await stateOf(upload.url).catch(() => null));
  if (known?.state === "refused" || known?.state === "complete") return onEnd();
  if (!upload.url && !chosenSystem() && statusOf(error)) return changeAndSendAgain(sentenceOf(error));
  return fail(sentenceOf(error));
}

// Nothing was begun because of what stands in the form.
function changeAndSendAgain(sentence) {
  leaveFreely();
  panel.hidden = true;
  form.hidden = false;
  sayOfFile(sentence);
  part("send").focus();
}

function stay(event) {
  event.preventDefault();
}

function leaveFreely() {
  removeEventListener("beforeunload", stay);
}

function prepare(file) {
  return new tus.Upload(file, {
    endpoint: form.dataset.endpoint,
    metadata: metadata(file),
    headers: { "X-CSRFToken": token },
    chunkSize: PART_BYTES,
    retryDelays: RETRY_MS,
    removeFingerprintOnSuccess: true,
    onShouldRetry: mayRetry,
    onUploadUrlAvailable: onceKnown,
    onProgress: (sent, total) => {
      if (state === "waiting" && sent < total) enter("running");
      showProgress(sent, total);
    },
    onSuccess: onEnd,
    onError: onFailure,
  });
}

async function send(file) {
  upload = prepare(file);
  let earlier;
  try {
    earlier = await earlierUpload(file, upload);
  } catch (error) {
    sayOfFile(error.sentence || "The portal cannot be reached. Check your connection and try again.");
    return;
  }
  if (!earlier && form.dataset.refusal) {
    sayOfFile(`This is none of the unfinished uploads. ${form.dataset.refusal}`);
    return;
  }
  if (earlier) Object.assign(upload.options, { uploadUrl: earlier, endpoint: null });
  form.hidden = true;
  panel.hidden = false;
  part("sending-name").textContent = file.name;
  document.querySelectorAll("[data-unfinished]").forEach((item) => (item.hidden = item.dataset.unfinished === earlier));
  addEventListener("beforeunload", stay);
  enter("running", earlier ? "The upload continues where it stopped." : "");
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
  part("send").textContent = begun.length ? "Go on" : "Upload";
  if (begun.length === 1) chooseSystemOf(begun[0]);
  sayOfFile(problem || (begun.length ? "A part of this file is here already; the upload goes on from there." : ""), Boolean(problem));
}

// What has begun for a system goes on for it, whatever is chosen.
function chooseSystemOf(begun) {
  const { system, kind } = begun.dataset;
  const fits = (one) => one.value === system && (system || one.dataset.kind === kind);
  const choice = [...form.querySelectorAll("[name=system]")].find(fits);
  if (!choice) return;
  choice.checked = true;
  showTitleForNew();
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
    event.preventDefault();
    part("send").disabled = true;
    send(part("file").files[0]).finally(() => (part("send").disabled = false));
  });
  part("pause").addEventListener("click", async () => {
    if (state === "running" || state === "waiting") {
      await upload.abort();
      enter("paused", "What has arrived is kept.");
      samples = [];
    } else {
      enter("running");
      upload.start();
    }
  });
  part("cancel").addEventListener("submit", () => {
    if (!part("cancel").dataset.sure) return; // it is just being asked
    leaveFreely();
    upload.abort();
  });
  addEventListener("online", () => {
    if (state === "failed" && upload) part("pause").click();
  });
}
