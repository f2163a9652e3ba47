// The place on a page of results is kept when scores are switched.

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
