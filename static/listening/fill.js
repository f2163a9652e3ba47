// Buttons that fill values into the form that they stand in; what follows from a change follows.
document.addEventListener("click", ({ target }) => {
  const button = target.closest?.("button[data-fill]");
  if (!button) return;
  const values = new URLSearchParams(button.dataset.fill);
  let last = null;
  for (const name of new Set(values.keys())) {
    for (const field of button.form.querySelectorAll(`[name="${name}"]`)) {
      if (field.type === "checkbox") field.checked = values.getAll(name).includes(field.value);
      else field.value = values.get(name);
      last = field;
    }
  }
  last?.dispatchEvent(new Event("change", { bubbles: true }));
});
