// Writing down what is heard. Only what is typed counts: pasting, dropping and corrections by the browser are refused,
// and noted where they are tried. Nothing is an answer only if it is said so.

import { announce, word } from "./words.js";

const REFUSED = {
  insertFromPaste: "paste",
  insertFromPasteAsQuotation: "paste",
  insertFromYank: "paste",
  insertFromDrop: "drop",
  insertReplacementText: "correction",
};

export function mount(page) {
  const { root, kept } = page;
  const part = (name) => root.querySelector(`[data-part="${name}"]`);
  const text = part("text");
  const nothing = part("nothing");
  text.value = kept?.raw ?? "";
  nothing.checked = text.readOnly = kept?.nothing ?? false;
  let written = ""; // before it was said that nothing was understood

  const given = () => ({ raw: text.value, nothing: nothing.checked });

  function changed() {
    text.readOnly = nothing.checked;
    page.changed(given());
  }

  function refuse(event, what, characters = 0) {
    event.preventDefault();
    page.events.add(`${what}-refused`, { characters });
    part("refused").hidden = false;
    part("refused").textContent = word(`${what}-refused`);
    announce(part("refused").textContent);
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
    if (what) page.events.add(`${what}-done`); // by a browser that cannot be kept from it
    part("refused").hidden = true;
    changed();
  });
  nothing.addEventListener("change", () => {
    if (nothing.checked) written = text.value;
    text.value = nothing.checked ? "" : written;
    changed();
  });

  return {
    isComplete: () => nothing.checked || text.value.trim() !== "",
    answer: () => ({ text: given() }),
    missing: () => ({ element: text, sentence: word("missing-text") }),
  };
}
