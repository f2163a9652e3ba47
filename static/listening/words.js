// What the script says stands in the page, in the evaluator's language: <template> elements hold it by name.

export const part = (name) => document.getElementById(name);
const texts = new Map();
for (const template of document.querySelectorAll("#words, #form-words")) {
  for (const element of template.content.querySelectorAll("[data-word]")) {
    texts.set(element.dataset.word, element.textContent.trim());
  }
}

/** The text of that name with each {value} filled in. */
export function word(name, values = {}) {
  return (texts.get(name) ?? name).replace(/\{(\w+)\}/g, (whole, key) => String(values[key] ?? whole));
}

/** A recording as the page calls it. */
export const nameOf = (slot) => texts.get(`name-${slot}`) ?? slot.toUpperCase();

let waiting = 0;

/** Has a screen reader say it once it has finished speaking. */
export function announce(text) {
  const region = part("spoken");
  region.textContent = "";
  clearTimeout(waiting);
  waiting = setTimeout(() => (region.textContent = text), 60); // the same words twice are two changes
}
