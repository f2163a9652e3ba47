// Before a form or a link leaves the page: without a connection it stays, with what was entered, and says so.

const notice = document.getElementById("offline");
let isAsking = false;
let mayGo = false;

async function onLeave(event) {
  const isForm = event.type === "submit";
  const leaving = event.target.closest(isForm ? "form:not([action^=http])" : "a:not([href^=http], [href^='#'])");
  if (!leaving || mayGo || event.defaultPrevented || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  if (isAsking) return;
  isAsking = notice.hidden = true;
  const asked = { cache: "no-store", signal: AbortSignal.timeout?.(10_000) };
  mayGo = notice.hidden = await fetch(import.meta.url, asked).then(() => true, () => false);
  if (mayGo && isForm) leaving.requestSubmit(event.submitter);
  else if (mayGo) leaving.click();
  isAsking = mayGo = false;
}

addEventListener("submit", onLeave);
addEventListener("click", onLeave);
addEventListener("online", () => (notice.hidden = true));
