// Buttons that copy a code; where the browser does not allow it they stay hidden, and the code can be selected.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = button.dataset.copied;
      } catch {
        button.hidden = true;
      }
    });
  }
}
