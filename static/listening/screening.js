// The sounds of the tests before the trials: one tap unlocks audio, one sound plays at a time, each as it is stored.
// What the browser's audio was like goes with the form. All words come from the page.

const form = document.querySelector("form[data-screening]");
const context = new (window.AudioContext || window.webkitAudioContext)();
const loaded = new Map();
let playing = null;

for (const button of form.querySelectorAll("[data-sound]")) {
  button.hidden = false;
  const state = button.parentElement.querySelector(".play-state");
  const answers = [...(button.closest("fieldset") ?? form).querySelectorAll("input[type=radio]")];
  // What stands ticked on a page that came back was heard before.
  if (!answers.some((answer) => answer.checked)) {
    setDisabled(answers, true);
    say(state, "before");
  }
  button.addEventListener("click", () => play(button, state, answers));
}

function setDisabled(answers, isDisabled) {
  for (const answer of answers) answer.disabled = isDisabled;
}

async function play(button, state, answers) {
  stop();
  // Within the tap, before anything is waited for: only so do phones let sound out.
  const unlocked = context.resume();
  const turn = { button, state, source: null };
  playing = turn;
  say(state, "loading");
  try {
    await unlocked;
    note();
    const sound = await load(button.dataset.sound);
    if (playing !== turn) return;
    turn.source = new AudioBufferSourceNode(context, { buffer: sound });
    turn.source.connect(context.destination);
    turn.source.onended = () => {
      if (playing === turn) {
        playing = null;
        setDisabled(answers, false);
        say(state, "played");
      }
    };
    turn.source.start();
    say(state, "playing");
  } catch {
    if (playing === turn) playing = null;
    say(state, "failed");
  }
}

function stop() {
  if (!playing) return;
  const { source, state } = playing;
  playing = null;
  source?.stop();
  state.textContent = "";
}

function load(address) {
  if (!loaded.has(address)) {
    const sound = fetch(address, { credentials: "omit" }).then(async (answer) => {
      if (!answer.ok) throw new Error(answer.status);
      return context.decodeAudioData(await answer.arrayBuffer());
    });
    loaded.set(address, sound);
    sound.catch(() => loaded.delete(address)); // a further tap tries again
  }
  return loaded.get(address);
}

function say(state, what) {
  state.textContent = state.dataset[what];
}

function note() {
  const told = {
    context_state: context.state,
    sample_rate: String(context.sampleRate),
    screen: `${screen.width}x${screen.height}`,
  };
  for (const [name, value] of Object.entries(told)) {
    const field = form.elements.namedItem(name);
    if (field) field.value = value;
  }
}
