// Comforts of the pages of results: the place on the page is kept when scores are switched, and figures read out what
// the pointer is at. Everything that is read out stands in the page as text or table as well.

const KEPT = "results-place";

// The heading that is nearest to the top, and how far it is away: the two kinds of scores differ in length.
function nearestHeading() {
  const headings = [...document.querySelectorAll("main :is(h2, h3)[id]")];
  return headings.findLast((heading) => heading.checkVisibility() && heading.getBoundingClientRect().top < innerHeight / 3);
}

document.querySelector(".switch")?.addEventListener("click", ({ target }) => {
  const heading = target.closest("a") && nearestHeading();
  if (!heading) return;
  const open = [...document.querySelectorAll("details")].map((one) => one.open);
  const place = { id: heading.id, top: heading.getBoundingClientRect().top, open };
  sessionStorage.setItem(KEPT, JSON.stringify({ ...place, path: location.pathname }));
});

function returnToPlace() {
  const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
  sessionStorage.removeItem(KEPT);
  const heading = kept?.path === location.pathname && document.getElementById(kept.id);
  if (!heading) return;
  const details = document.querySelectorAll("details");
  if (details.length === kept.open.length) details.forEach((one, place) => (one.open = kept.open[place]));
  scrollBy({ top: heading.getBoundingClientRect().top - kept.top, behavior: "instant" });
}
returnToPlace();

// A cell of a square says its numbers beneath it.
document.querySelectorAll("[data-readout]").forEach((figure) => {
  const output = figure.querySelector(".readout");
  output.hidden = false;
  const usual = output.textContent;
  figure.addEventListener("pointerover", ({ target }) => {
    output.textContent = target.closest("[data-read]")?.dataset.read ?? usual;
  });
  figure.addEventListener("pointerleave", () => (output.textContent = usual));
});

// A curve says its nearest point.
document.querySelectorAll("[data-curve]").forEach((figure) => {
  const points = JSON.parse(document.getElementById(figure.dataset.curve).textContent);
  const svg = figure.querySelector("svg");
  const dot = svg.querySelector(".dot");
  const output = figure.querySelector(".readout");
  output.hidden = false;
  const usual = output.textContent;
  svg.addEventListener("pointermove", (event) => {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const distance = ([px, py]) => (px - x) ** 2 + (py - y) ** 2;
    const nearest = points.reduce((best, point) => (distance(point) < distance(best) ? point : best));
    dot.setAttribute("cx", nearest[0]);
    dot.setAttribute("cy", nearest[1]);
    dot.removeAttribute("hidden");
    output.textContent = nearest[2];
  });
  svg.addEventListener("pointerleave", () => {
    dot.setAttribute("hidden", "");
    output.textContent = usual;
  });
});
