// Writing down what is heard. Only what is typed counts: pasting, dropping and corrections by the browser are refused,
// and noted where they are tried. Nothing is an answer only if it is said so.

const REFUSED = {
  insertFromPaste: "paste",
  insertFromPasteAsQuotation: "paste",
  insertFromYank: "paste",
  insertFromDrop: "drop",
  insertReplacementText: "correction",
};

export function mount(root, trial, tools) {
  root.append(document.getElementById("form-of-trial").content.cloneNode(true));
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const text = part("text");
  const nothing = part("nothing");
  text.value = tools.kept?.raw ?? "";
  nothing.checked = tools.kept?.nothing ?? false;
  let written = ""; // before it was said that nothing was understood

  const isComplete = () => nothing.checked || text.value.trim() !== "";

  function changed() {
    text.readOnly = nothing.checked;
    tools.keep({ raw: text.value, nothing: nothing.checked });
    tools.ready(isComplete());
  }

  function refuse(event, what, characters = 0) {
    event.preventDefault();
    tools.events(`${what}-refused`, { characters });
    part("refused").hidden = false;
    part("refused").textContent = tools.word(`${what}-refused`);
    tools.announce(part("refused").textContent);
  }

  text.addEventListener("paste", (event) => refuse(event, "paste", event.clipboardData?.getData("text").length));
  text.addEventListener("drop", (event) => refuse(event, "drop", event.dataTransfer?.getData("text").length));
  text.addEventListener("dragover", (event) => event.preventDefault());
  text.addEventListener("beforeinput", (event) => {
    const what = REFUSED[event.inputType];
    if (what && event.cancelable) refuse(event, what, event.data?.length);
  });
  text.addEventListener("input", (event) => {
    const what = REFUSED[event.inputType];
    if (what) tools.events(`${what}-done`); // by a browser that cannot be kept from it
    part("refused").hidden = true;
    changed();
  });
  nothing.addEventListener("change", () => {
    if (nothing.checked) written = text.value;
    text.value = nothing.checked ? "" : written;
    changed();
  });
  changed();

  return {
    answer: () => (isComplete() ? { text: { raw: text.value, nothing: nothing.checked } } : null),
    missing: () => ({ element: text, sentence: tools.word("missing-text") }),
  };
}
