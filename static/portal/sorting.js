// Sorts a ranking where it stands and says so in the address. Without this script the headings are links that give the
// same order.

const DIRECTIONS = { asc: "ascending", desc: "descending" };

function valueOf(row, place) {
  const { value } = row.cells[place].dataset;
  if (value === undefined || value === "") return null;
  return Number.isNaN(Number(value)) ? value : Number(value);
}

// Rows without a value stay last in either order; equal ones keep the order that they had when the page came.
function sorted(rows, place, order) {
  const sign = order === "desc" ? -1 : 1;
  return [...rows].sort((one, other) => {
    const [a, b] = [valueOf(one, place), valueOf(other, place)];
    if (a === null || b === null) return (a === null) - (b === null);
    return a < b ? -sign : a > b ? sign : 0;
  });
}

document.querySelectorAll("table[data-sortable]").forEach((table) => {
  const body = table.tBodies[0];
  const links = [...table.querySelectorAll("thead a[data-order]")];
  const [rank] = links;
  const first = [...body.rows];
  const cameByRank = rank.closest("th").ariaSort === "ascending";
  table.tHead.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-order]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const heading = link.closest("th");
    const natural = link.dataset.order;
    const order = heading.ariaSort !== DIRECTIONS[natural] ? natural : natural === "asc" ? "desc" : "asc";
    const inPlace = link === rank && order === "asc" && cameByRank; // unranked rows among the others
    body.append(...(inPlace ? first : sorted(first, heading.cellIndex, order)));
    for (const each of links) each.closest("th").removeAttribute("aria-sort");
    heading.ariaSort = DIRECTIONS[order];
    const address = new URL(window.location);
    address.searchParams.set("sort", new URL(link.href).searchParams.get("sort"));
    address.searchParams.set("order", order);
    window.history.replaceState(null, "", address);
    document.querySelectorAll(".choices-bar a").forEach((other) => {
      const there = new URL(other.href);
      for (const name of ["sort", "order"]) there.searchParams.set(name, address.searchParams.get(name));
      other.href = there;
    });
    document.getElementById("announcer").textContent = `Sorted by ${link.textContent}, ${DIRECTIONS[order]}`;
  });
});
