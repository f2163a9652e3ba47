// Buttons that copy what stands before them; where the browser does not allow it, they select it and say so.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      const { copy, copied, byHand } = button.dataset;
      const isCopied = await navigator.clipboard.writeText(copy).then(() => true, () => false);
      if (!isCopied) getSelection().selectAllChildren(button.previousElementSibling);
      button.nextElementSibling.textContent = isCopied ? copied : byHand;
    });
  }
}
