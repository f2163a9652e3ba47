// Before a form or a link leaves the page: where the portal does not answer, or is under maintenance, the page stays, with
// what was entered, and says so.

const notices = { offline: document.getElementById("offline"), unavailable: document.getElementById("unavailable") };
let isAsking = false;
let mayGo = false;

function show(name) {
  for (const [each, notice] of Object.entries(notices)) notice.hidden = each !== name;
}

/** What keeps the page from going there: "offline", "unavailable" or "". */
async function obstacle(address) {
  const asked = { method: "HEAD", cache: "no-store", redirect: "manual", signal: AbortSignal.timeout?.(10_000) };
  try {
    const { status } = await fetch(address, asked);
    return status >= 500 ? "unavailable" : "";
  } catch {
    return "offline";
  }
}

async function onLeave(event) {
  const isForm = event.type === "submit";
  const leaving = event.target.closest(isForm ? "form:not([action^=http])" : "a:not([href^=http], [href^='#'])");
  if (!leaving || mayGo || event.defaultPrevented || event.ctrlKey || event.metaKey) return;
  // A field of the form may have the name of its property.
  const address = new URL(leaving.getAttribute(isForm ? "action" : "href") ?? "", location.href);
  if (address.origin !== location.origin) return; // of a mail program
  event.preventDefault();
  if (isAsking) return;
  isAsking = true;
  show("");
  const found = await obstacle(address);
  show(found);
  mayGo = !found;
  if (mayGo && isForm) leaving.requestSubmit(event.submitter);
  else if (mayGo) leaving.click();
  mayGo = false;
  setTimeout(() => (isAsking = false), found ? 0 : 10_000); // until it has gone, a second tap changes nothing
}

addEventListener("submit", onLeave);
addEventListener("click", onLeave);
addEventListener("pageshow", () => (isAsking = false));
addEventListener("online", () => (notices.offline.hidden = true));
