// What was refused is what the window shows and where the keyboard is, wherever the address leads: a form without an
// address of its own is sent to that of the page, with the place in it that was last looked at.
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
