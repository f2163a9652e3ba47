// The picture of one instant follows the player of its page; without this module its form asks for an instant.
// Markup: [data-explain=latest second both voices have] > (form with [name=at], .follows), #explained > figure.

const WAIT_MS = 300;
let timer = 0;
let asked = null;

/** The page with the picture of this instant. */
async function fetchPage(address, signal) {
  const answer = await fetch(address, { credentials: "same-origin", signal });
  if (!answer.ok) throw new Error(`The picture could not be fetched (answer ${answer.status}). Reload the page.`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!page.getElementById("explained")) throw new Error("The picture could not be fetched. Reload the page.");
  return page;
}

function tell(explained, text) {
  explained.querySelector(".notice")?.remove();
  const notice = Object.assign(document.createElement("p"), { className: "notice warning", textContent: text });
  notice.setAttribute("role", "status");
  explained.prepend(notice);
}

/** Say where a picture does not come: drawing waits for others when many are asked for. */
function watchPicture(explained) {
  explained.querySelectorAll("img").forEach((image) => {
    image.onerror = () => tell(explained, "The picture could not be drawn just now. Reload the page in a moment.");
    image.loading = "eager";
  });
}

function replace(section, page) {
  const old = section.querySelector("#explained");
  const fresh = document.adoptNode(page.getElementById("explained"));
  const isOpen = old.querySelector("details")?.open ?? false;
  fresh.querySelectorAll("details").forEach((details) => (details.open = isOpen));
  watchPicture(fresh);
  old.replaceWith(fresh);
  return fresh;
}

async function show(section, position) {
  asked?.abort();
  asked = new AbortController();
  const { signal } = asked;
  const at = Math.max(0, Math.min(Number(section.dataset.explain), position)).toFixed(2);
  const field = section.querySelector("[name=at]");
  if (field.value === at) return section.querySelector("#explained").removeAttribute("aria-busy");
  const address = new URL(location.href);
  address.searchParams.set("at", at);
  address.hash = "";
  section.querySelector("#explained").setAttribute("aria-busy", "true");
  try {
    const page = await fetchPage(address, signal);
    if (signal.aborted) return;
    const fresh = replace(section, page);
    field.value = at;
    history.replaceState(history.state, "", address);
    document.getElementById("announcer").textContent = fresh.querySelector("img").alt;
  } catch (error) {
    if (error.name === "AbortError") return;
    const explained = section.querySelector("#explained");
    explained.removeAttribute("aria-busy");
    tell(explained, error.message);
  }
}

/** Lets the picture of the page follow where its player stands still. */
export function watch() {
  const section = document.querySelector("[data-explain]:not([data-follows])");
  if (!section) return;
  section.dataset.follows = "";
  section.querySelector(".follows").hidden = false;
  watchPicture(section.querySelector("#explained"));
  document.addEventListener("player:rest", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => show(section, event.detail), WAIT_MS);
  });
}
