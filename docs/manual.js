// What the theme leaves out for keyboards and screen readers: wide tables scroll by key, hidden inputs take no focus, buttons of code are no landmarks.
function complete() {
  for (const box of document.querySelectorAll(".md-typeset__scrollwrap")) box.tabIndex = 0;
  for (const input of document.querySelectorAll(".md-option")) input.tabIndex = -1;
  for (const buttons of document.querySelectorAll("nav.md-code__nav")) buttons.setAttribute("role", "none");
}
new MutationObserver(complete).observe(document.documentElement, { childList: true, subtree: true });
complete();
