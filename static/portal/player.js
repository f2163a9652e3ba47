// Turns every <figure data-player>, which has two sources, into one player of the same instant of either, switched with A
// and B while it plays; without this module its <audio> elements remain. The level is never changed.
// Markup: figure[data-player] > .player-source > (p > .key) + audio.

const RATE = 16000;
const ARROW_S = 0.25;
const FADE_S = 0.008;
let context = null;
let playing = null;

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function button(textContent, className, onclick) {
  return make("button", { type: "button", textContent, className, onclick });
}

async function fetchRecording(address) {
  const answer = await fetch(address, { credentials: "same-origin" }).catch(() => {
    throw new Error("The recording could not be fetched: the portal does not answer. Check the connection and reload.");
  });
  if (answer.ok) return answer;
  throw new Error(`The recording could not be fetched (answer ${answer.status}). Reload the page: its link may have expired.`);
}

async function loadSource(element) {
  const audio = element.querySelector("audio");
  const answer = await fetchRecording(audio.currentSrc || audio.src);
  const bytes = await answer.arrayBuffer();
  const buffer = await new OfflineAudioContext(1, 1, RATE).decodeAudioData(bytes).catch(() => {
    throw new Error("This browser cannot decode the recording; download it to listen.");
  });
  if (!buffer.length) throw new Error("The recording is empty.");
  const name = element.querySelector(".key")?.textContent.trim() || "Recording";
  return { audio, buffer, name };
}

/** All sources from the same instant on, one of them audible; positions in seconds. */
class Deck {
  constructor(buffers) {
    this.buffers = buffers;
    this.duration = Math.max(...buffers.map((buffer) => buffer.duration));
    this.heard = 0;
    this.offset = 0;
    this.voices = null;
  }

  get position() {
    if (!this.voices) return this.offset;
    return Math.min(this.duration, this.offset + Math.max(0, context.currentTime - this.startedAt));
  }

  start() {
    // At 16 kHz the browser resamples once, at its output, instead of each source by straight lines.
    context ??= new AudioContext({ sampleRate: RATE });
    context.resume();
    if (this.offset >= this.duration - 0.01) this.offset = 0;
    this.startedAt = context.currentTime;
    this.voices = this.buffers.map((buffer, index) => {
      const gain = new GainNode(context, { gain: index === this.heard ? 1 : 0 });
      const voice = new AudioBufferSourceNode(context, { buffer });
      voice.connect(gain).connect(context.destination);
      if (this.offset < buffer.duration) voice.start(0, this.offset);
      return { voice, gain };
    });
  }

  stop() {
    this.offset = this.position;
    this.voices?.forEach(({ voice, gain }) => {
      voice.disconnect();
      gain.disconnect();
    });
    this.voices = null;
  }

  seek(position) {
    const running = this.voices !== null;
    if (running) this.stop();
    this.offset = Math.max(0, Math.min(this.duration, position));
    if (running) this.start();
  }

  hear(index) {
    this.heard = index;
    this.voices?.forEach(({ gain }, other) => {
      gain.gain.setTargetAtTime(other === index ? 1 : 0, context.currentTime, FADE_S / 3);
    });
  }
}

class Player {
  constructor(figure, sources) {
    this.figure = figure;
    this.sources = sources;
    this.deck = new Deck(sources.map((source) => source.buffer));
    for (const { audio } of sources) {
      audio.hidden = true;
      audio.pause();
    }
    this.addControls();
    this.hear(0);
    figure.addEventListener("keydown", (event) => this.key(event));
  }

  addControls() {
    this.toggle = button("", "button small toggle", () => this.playOrPause());
    this.slider = make("input", { type: "range", min: 0, max: this.deck.duration, step: 0.01, ariaLabel: "Position" });
    this.slider.oninput = () => this.seek(Number(this.slider.value));
    this.time = make("span", { className: "time" });
    this.switches = this.sources.map((source, index) =>
      button(`${"AB"[index]} ${source.name}`, "button quiet small", () => this.hear(index)),
    );
    const choice = make("div", { className: "player-switch", role: "group", ariaLabel: "Heard" }, ...this.switches);
    const controls = [this.toggle, choice, this.slider, this.time, keysHelp()];
    this.figure.append(make("div", { className: "player-controls" }, ...controls));
    this.show();
  }

  playOrPause() {
    if (this.deck.voices) return this.pause();
    if (playing !== this) playing?.pause();
    playing = this;
    this.deck.start();
    this.show();
    const follow = () => {
      if (!this.deck.voices) return;
      if (this.deck.position >= this.deck.duration || !this.figure.isConnected) return this.pause();
      this.show();
      requestAnimationFrame(follow);
    };
    requestAnimationFrame(follow);
  }

  pause() {
    this.deck.stop();
    this.show();
  }

  seek(position) {
    this.deck.seek(position);
    this.show();
  }

  hear(index) {
    this.deck.hear(index);
    this.switches.forEach((choice, other) => (choice.ariaPressed = String(other === index)));
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const pressable = event.target.closest("button, summary, a");
    const switchTo = ["a", "b"].indexOf(event.key.toLowerCase());
    if (switchTo >= 0) this.hear(switchTo);
    else if (event.key === "ArrowLeft") this.seek(this.deck.position - ARROW_S);
    else if (event.key === "ArrowRight") this.seek(this.deck.position + ARROW_S);
    else if (event.key === " " && (!pressable || pressable.ariaPressed === "true")) this.playOrPause();
    else return;
    event.preventDefault();
  }

  show() {
    const { position, duration, voices } = this.deck;
    const state = `${position.toFixed(1)} / ${duration.toFixed(1)} s`;
    this.toggle.textContent = voices ? "Pause" : "Play";
    this.figure.toggleAttribute("data-playing", voices !== null);
    this.slider.value = position;
    if (!voices) this.slider.ariaValueText = state;
    this.time.textContent = state;
  }
}

function keysHelp() {
  const key = (name) => make("kbd", { textContent: name });
  const text = [key("A"), " ", key("B"), " switch at the same instant · ", key("space")];
  return make("p", { className: "player-keys" }, ...text, " play or pause · ", key("←"), " ", key("→"), " seek");
}

async function enhance(figure) {
  try {
    const elements = [...figure.querySelectorAll(".player-source")];
    new Player(figure, await Promise.all(elements.map(loadSource)));
  } catch (error) {
    figure.append(make("p", { className: "notice warning", role: "status", textContent: error.message }));
  }
}

const nearby = new IntersectionObserver(
  (entries) =>
    entries.filter((entry) => entry.isIntersecting).forEach(({ target }) => {
      nearby.unobserve(target);
      enhance(target);
    }),
  { rootMargin: "300px" },
);

/** Watches the players of the page; each is loaded once it comes near the window. */
export function watch() {
  document.querySelectorAll("figure[data-player]:not([data-watched])").forEach((figure) => {
    figure.dataset.watched = "";
    nearby.observe(figure);
  });
}
