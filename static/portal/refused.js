// The window shows what was refused, and the keyboard is there, wherever the address leads.
const REFUSED = ".error-summary, .messages .error, .errorlist";

function showRefused() {
  const refused = document.querySelector(REFUSED);
  if (!refused) return;
  if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  refused.tabIndex = -1;
  refused.focus();
  refused.scrollIntoView({ block: "nearest" });
}

showRefused();
addEventListener("load", showRefused); // by then the browser has gone to the place in the address
