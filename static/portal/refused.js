// The window shows what was refused, and the keyboard is there, wherever the address leads.
const refused = document.querySelector(".error-summary, .messages .error, .errorlist");

function show() {
  if (location.hash) history.replaceState(history.state, "", location.pathname + location.search);
  refused.tabIndex = -1;
  refused.focus();
  refused.scrollIntoView({ block: "nearest" });
}

if (refused) {
  show();
  onload = show; // after the browser went to the place in the address, not after the person did
  onkeydown = onpointerdown = onwheel = () => (onload = null);
}
