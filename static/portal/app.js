// Small comforts of every page. Each page also works without them.

function confirmed(question, action) {
  const dialog = document.createElement("dialog");
  dialog.innerHTML =
    '<form method="dialog"><p></p><div class="actions">' +
    '<button class="button quiet" value="no" autofocus>Go back</button><button class="button danger" value="yes"></button></div></form>';
  dialog.querySelector("p").textContent = question;
  dialog.querySelector("[value=yes]").textContent = action || "Continue";
  dialog.ariaLabel = question;
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
  });
}

// Without HTTPS a browser has no clipboard: then the text is marked, and copied the old way where that still works.
async function copyText(code) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(code);
    return document.execCommand("copy");
  }
}

function addCopyButtons() {
  document.querySelectorAll(":is(.command, .listing):not(:has(button))").forEach((command) => {
    const button = Object.assign(document.createElement("button"), {
      type: "button",
      className: "button quiet small",
      textContent: "Copy",
    });
    button.addEventListener("click", async () => {
      button.textContent = (await copyText(command.querySelector("code"))) ? "Copied" : "Marked: copy it";
      announce(button.textContent, true);
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    command.append(button);
  });
}

async function enhance() {
  addCopyButtons();
  if (document.querySelector("figure[data-player]")) (await import("./player.js")).watch();
}

function announce(text, isAgain = false) {
  const region = document.getElementById("announcer");
  if (region && isAgain) region.textContent = "";
  if (region && text && region.textContent !== text) region.textContent = text;
}

// A link to something within a fold, or to the fold itself, opens it.
function openTarget() {
  if (!location.hash) return;
  const target = document.querySelector(":target");
  const folds = [];
  for (let fold = target?.closest("details"); fold; fold = fold.parentElement.closest("details")) folds.push(fold);
  if (folds.every((fold) => fold.open)) return;
  for (const fold of folds) fold.open = true;
  target.scrollIntoView();
}
for (const kind of ["load", "hashchange"]) addEventListener(kind, openTarget);

enhance();

// A form that says data-confirm="question" is sent only after a yes.
document.addEventListener("submit", async (event) => {
  const { confirm: question, confirmAction: action } = event.target.dataset;
  if (!question || event.target.dataset.sure) return;
  event.preventDefault();
  const { submitter } = event;
  if (!(await confirmed(question, action))) return void document.getElementById(submitter?.id)?.focus();
  event.target.querySelectorAll("[name=ask]").forEach((field) => field.remove()); // by which the portal asks without script
  // A live part may have renewed itself meanwhile, and a form outside of the page is not sent.
  if (!event.target.isConnected) document.body.append(event.target);
  event.target.dataset.sure = "yes";
  event.target.requestSubmit(submitter);
  delete event.target.dataset.sure;
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector(".menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});
document.addEventListener("click", (event) => {
  const menu = document.querySelector(".menu[open]");
  if (menu && !menu.contains(event.target)) menu.open = false;
});

// Who wrote in a form with an area of text is asked before a reload or a way back loses it.
const WRITING = "form.form[method=post]:has(textarea)";

function ask(event) {
  event.preventDefault();
}

function askBeforeLeaving() {
  addEventListener("beforeunload", ask);
}

if (document.querySelector(`${WRITING} .errorlist`)) askBeforeLeaving(); // what was sent was not saved
document.addEventListener("input", (event) => {
  if (event.target.closest(WRITING)) askBeforeLeaving();
});
document.addEventListener("submit", (event) => {
  if (!event.defaultPrevented) removeEventListener("beforeunload", ask);
});

// A list of boxes to tick: buttons that tick several, and how much the ticked ones are.
const inMinutes = (seconds) => `about ${Math.max(1, Math.round(seconds / 60)).toLocaleString("en")} min`;

function tellExtent(output, boxes) {
  const ticked = boxes.filter((box) => box.checked);
  if (!ticked.length) return void (output.textContent = "No data set chosen.");
  const seconds = ticked.reduce((sum, box) => sum + Number(box.closest("[data-seconds]").dataset.seconds), 0);
  const { cost } = output.closest("form").querySelector("[data-cost]:has(input:checked)")?.dataset ?? {};
  const work = cost ? `; the work takes ${inMinutes(seconds * cost)}` : "";
  output.textContent = `${ticked.length} data set${ticked.length > 1 ? "s" : ""}, ${inMinutes(seconds)} of speech${work}.`;
}

document.querySelectorAll("[data-choose]").forEach((chooser) => {
  const form = chooser.closest("form");
  const boxes = [...form.querySelectorAll(`input[name="${chooser.dataset.choose}"]`)];
  const output = form.querySelector("[data-extent]");
  const tell = () => tellExtent(output, boxes);
  chooser.hidden = false;
  chooser.addEventListener("click", ({ target }) => {
    if (!target.matches("button")) return;
    for (const box of boxes) box.checked = !target.value || box.closest("[data-role]").dataset.role === target.value;
    tell();
  });
  form.addEventListener("change", tell);
  tell(); // the browser may have kept ticks of before
});

// Pages that renew themselves rest while nobody looks at them.
document.addEventListener("htmx:beforeRequest", (event) => {
  if (document.hidden && event.detail.requestConfig.verb === "get") event.preventDefault();
});

// Parts of a page that renew themselves: new content gets its comforts, a change of state is spoken once,
// and a portal that stops answering is said so beside the numbers that are now old.
document.addEventListener("htmx:confirm", async (event) => {
  if (!event.detail.question) return;
  event.preventDefault();
  if (await confirmed(event.detail.question, event.target.dataset.confirmAction)) event.detail.issueRequest(true);
});
document.addEventListener("htmx:load", (event) => {
  enhance();
  const speaking = event.target.closest("[data-announce]") ?? event.target.querySelector("[data-announce]");
  announce(speaking?.dataset.announce);
});
document.addEventListener("htmx:afterRequest", ({ detail }) => {
  if (detail.requestConfig.verb === "get") document.getElementById("offline").hidden = detail.successful;
});
