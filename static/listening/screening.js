// The sounds of the tests before the trials: one tap unlocks audio, one sound plays at a time, without the silence at its
// end, which makes all files of a test equally long.
// What the browser's audio was like goes with the form. All words come from the page.

const form = document.querySelector("form[data-screening]");
const context = new AudioContext();
let playing = null;

for (const button of form.querySelectorAll("[data-sound]")) {
  button.hidden = false;
  const state = button.nextElementSibling;
  const answers = [...(button.closest("fieldset") ?? form).querySelectorAll("[type=radio], [name=heard]")];
  const sound = { address: button.dataset.sound, state, answers };
  if (state.nextElementSibling.disabled) { // not heard yet
    for (const answer of answers) answer.disabled = true;
    say(state, "before");
  }
  button.addEventListener("click", () => play(sound));
}

async function play(sound) {
  stop();
  // Within the tap, before anything is waited for: only so do phones let sound out.
  const unlocked = context.resume();
  const { state, answers } = sound;
  const turn = { state };
  playing = turn;
  say(state, "loading");
  try {
    await unlocked;
    note();
    sound.loading ??= load(sound.address); // once
    const buffer = await sound.loading;
    if (playing !== turn) return;
    turn.source = new AudioBufferSourceNode(context, { buffer });
    turn.source.connect(context.destination);
    turn.source.onended = () => {
      if (playing !== turn) return;
      playing = null;
      for (const answer of answers) answer.disabled = false;
      say(state, "played");
    };
    turn.source.start(0, 0, end_s(buffer));
    say(state, "playing");
  } catch {
    sound.loading = null;
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

async function load(address) {
  const answer = await fetch(address, { credentials: "omit" });
  if (!answer.ok) throw new Error(answer.status);
  return context.decodeAudioData(await answer.arrayBuffer());
}

function end_s(buffer) {
  const samples = buffer.getChannelData(0);
  return (samples.findLastIndex((sample) => Math.abs(sample) > 0.001) + 1) / buffer.sampleRate;
}

function say(state, what) {
  state.textContent = state.dataset[what];
}

function note() {
  const { context_state: state, sample_rate: rate, screen: size } = form.elements;
  if (!state) return; // only the sound test asks
  state.value = context.state;
  rate.value = context.sampleRate;
  size.value = `${screen.width}x${screen.height}`;
}
