// Spectrogram of one recording: analysis and picture, without any library.
// Conventions: samples in -1…1 at 16 kHz; 25 ms Hann window; levels in half decibels above -120 dB,
// where 0 dB is a full-scale sine; columns run with time, rows from 0 to 8 kHz.

export const RATE = 16000;
const WINDOW = 400;
const SIZE = 512;
const ROWS = SIZE / 2 + 1;
const COLUMNS = 1600;
const RANGE_DB = 80;
const FLOOR_DB = -120;
const PITCH_HZ = [75, 500];
const PITCH_TICKS_HZ = [75, 100, 150, 200, 300, 500];
const SPACE = { left: 44, right: 10, pitch: 50, wave: 40, gap: 8, bottom: 22 };

const hann = Float64Array.from({ length: WINDOW }, (_, n) => 0.5 - 0.5 * Math.cos((2 * Math.PI * n) / WINDOW));
const cosine = Float64Array.from({ length: SIZE / 2 }, (_, k) => Math.cos((2 * Math.PI * k) / SIZE));
const sine = Float64Array.from({ length: SIZE / 2 }, (_, k) => -Math.sin((2 * Math.PI * k) / SIZE));
const reversed = Uint16Array.from({ length: SIZE }, (_, n) => {
  let out = 0;
  for (let bit = 1; bit < SIZE; bit <<= 1) out = (out << 1) | (n & bit ? 1 : 0);
  return out;
});

/** Radix-2 Fourier transform of SIZE points in place; the input must be in bit-reversed order. */
function transform(re, im) {
  for (let half = 1; half < SIZE; half <<= 1) {
    const step = SIZE / (2 * half);
    for (let start = 0; start < SIZE; start += 2 * half) {
      for (let k = 0; k < half; k++) {
        const a = start + k;
        const b = a + half;
        const c = cosine[k * step];
        const s = sine[k * step];
        const x = re[b] * c - im[b] * s;
        const y = re[b] * s + im[b] * c;
        re[b] = re[a] - x;
        im[b] = im[a] - y;
        re[a] += x;
        im[a] += y;
      }
    }
  }
}

/** Levels of a recording: {levels: Uint8Array of COLUMNS × ROWS, loudest, peak, duration_s}. */
export function analyse(samples) {
  const levels = new Uint8Array(COLUMNS * ROWS);
  const re = new Float64Array(SIZE);
  const im = new Float64Array(SIZE);
  const fullScale = (WINDOW / 4) ** 2;
  let loudest = 0;
  for (let column = 0; column < COLUMNS; column++) {
    const first = Math.round(((column + 0.5) / COLUMNS) * samples.length - WINDOW / 2);
    re.fill(0);
    im.fill(0);
    for (let n = 0; n < WINDOW; n++) re[reversed[n]] = (samples[first + n] ?? 0) * hann[n];
    transform(re, im);
    for (let row = 0; row < ROWS; row++) {
      const power = (re[row] ** 2 + im[row] ** 2) / fullScale;
      const level = Math.max(0, Math.min(255, 2 * (10 * Math.log10(power + 1e-30) - FLOOR_DB)));
      levels[column * ROWS + row] = level;
      if (level > loudest) loudest = level;
    }
  }
  const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  return { levels, loudest, peak, duration_s: samples.length / RATE };
}

/** Where the time axis lies in a picture of this width: {left, width} in CSS pixels. */
export function plotSpan(width, withPitch) {
  return { left: SPACE.left, width: width - SPACE.left - (withPitch ? SPACE.pitch : SPACE.right) };
}

function theme(canvas) {
  const style = getComputedStyle(canvas);
  const token = (name) => style.getPropertyValue(`--${name}`).trim();
  const stops = [0, 1, 2, 3, 4, 5].map((n) => {
    const hex = token(`spectrum-${n}`);
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  });
  return { token, stops, font: `12px ${style.fontFamily}` };
}

function coloured(levels, loudest, stops) {
  const palette = Array.from({ length: 256 }, (_, level) => {
    const place = Math.max(0, Math.min(1, 1 - (loudest - level) / (2 * RANGE_DB))) * (stops.length - 1);
    const low = Math.min(Math.floor(place), stops.length - 2);
    return stops[low].map((value, channel) => value + (place - low) * (stops[low + 1][channel] - value));
  });
  const image = new ImageData(COLUMNS, ROWS);
  for (let column = 0; column < COLUMNS; column++) {
    for (let row = 0; row < ROWS; row++) {
      const pixel = 4 * ((ROWS - 1 - row) * COLUMNS + column);
      image.data.set(palette[levels[column * ROWS + row]], pixel);
      image.data[pixel + 3] = 255;
    }
  }
  const picture = new OffscreenCanvas(COLUMNS, ROWS);
  picture.getContext("2d").putImageData(image, 0, 0);
  return picture;
}

/**
 * Draws waveform, spectrogram, axes and, where given, the fundamental frequency.
 * source: {samples, analysis, pitch}; shared: {duration_s, loudest, peak, withPitch}, common to all pictures of a player.
 */
export function draw(canvas, source, shared) {
  const { clientWidth: width, clientHeight: height } = canvas;
  if (width < 120) return;
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  const paint = canvas.getContext("2d");
  paint.scale(density, density);
  const look = theme(canvas);
  paint.font = look.font;
  const span = plotSpan(width, shared.withPitch);
  const top = SPACE.wave + SPACE.gap;
  const box = { ...span, top, height: height - top - SPACE.bottom };
  drawWave(paint, source.samples, shared, { ...span, top: 0, height: SPACE.wave }, look);
  const drawn = (box.width * source.analysis.duration_s) / shared.duration_s;
  const picture = coloured(source.analysis.levels, shared.loudest, look.stops);
  paint.fillStyle = look.token("spectrum-0");
  paint.fillRect(box.left, box.top, box.width, box.height);
  paint.drawImage(picture, 0, 0.5, COLUMNS, ROWS - 1, box.left, box.top, drawn, box.height);
  drawAxes(paint, shared, box, look);
  if (source.pitch) drawPitch(paint, source.pitch, shared.duration_s, box, look);
}

function drawWave(paint, samples, shared, box, look) {
  const middle = box.top + box.height / 2;
  const scale = box.height / 2 / (shared.peak || 1);
  const perPixel = (shared.duration_s * RATE) / box.width;
  paint.fillStyle = look.token("ink-soft");
  for (let x = 0; x < box.width; x++) {
    let low = 0;
    let high = 0;
    const end = Math.min(samples.length, Math.ceil((x + 1) * perPixel));
    for (let n = Math.floor(x * perPixel); n < end; n++) {
      if (samples[n] < low) low = samples[n];
      if (samples[n] > high) high = samples[n];
    }
    paint.fillRect(box.left + x, middle - high * scale, 1, Math.max(0.75, (high - low) * scale));
  }
  paint.textAlign = "right";
  paint.textBaseline = "middle";
  paint.fillText(`±${shared.peak.toFixed(2)}`, box.left - 6, middle);
}

function drawAxes(paint, shared, box, look) {
  const bottom = box.top + box.height;
  const right = box.left + box.width;
  paint.fillStyle = look.token("ink-soft");
  paint.strokeStyle = look.token("ink-soft");
  paint.lineWidth = 1;
  paint.strokeRect(box.left + 0.5, box.top + 0.5, box.width - 1, box.height - 1);
  paint.textAlign = "right";
  for (const kilohertz of [0, 2, 4, 6, 8]) {
    const y = bottom - (box.height * kilohertz) / 8;
    paint.fillRect(box.left - 4, y - 0.5, 4, 1);
    paint.textBaseline = kilohertz === 8 ? "top" : kilohertz === 0 ? "bottom" : "middle";
    paint.fillText(kilohertz === 8 ? "8 kHz" : String(kilohertz), box.left - 6, y);
  }

  const steps_s = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300];
  const step_s = steps_s.find((step) => (step / shared.duration_s) * box.width >= 56) ?? 600;
  paint.textBaseline = "top";
  for (let n = 0; n * step_s <= shared.duration_s; n++) {
    const x = box.left + (n * step_s * box.width) / shared.duration_s;
    paint.fillRect(Math.min(x, right - 1), bottom, 1, 4);
    const last = (n + 1) * step_s > shared.duration_s;
    paint.textAlign = n === 0 ? "left" : x > right - 20 ? "right" : "center";
    paint.fillText(`${step_s < 1 ? (n * step_s).toFixed(1) : n * step_s}${last ? " s" : ""}`, x, bottom + 6);
  }

  if (!shared.withPitch) return;
  paint.textAlign = "left";
  for (const hertz of PITCH_TICKS_HZ) {
    const y = pitchHeight(hertz, box);
    paint.fillRect(right, y - 0.5, 4, 1);
    paint.textBaseline = hertz === 500 ? "top" : hertz === 75 ? "bottom" : "middle";
    paint.fillText(hertz === 500 ? "500 Hz" : String(hertz), right + 6, y);
  }
}

function pitchHeight(hertz, box) {
  const [low, high] = PITCH_HZ;
  return box.top + box.height * (1 - Math.log(hertz / low) / Math.log(high / low));
}

function drawPitch(paint, pitch, duration_s, box, look) {
  const line = new Path2D();
  let open = false;
  pitch.hz.forEach((hertz, frame) => {
    const voiced = hertz >= PITCH_HZ[0] && hertz <= PITCH_HZ[1];
    const x = box.left + ((pitch.start_s + frame * pitch.step_s) / duration_s) * box.width;
    if (voiced) line[open ? "lineTo" : "moveTo"](x, pitchHeight(hertz, box));
    open = voiced;
  });
  paint.lineJoin = "round";
  paint.lineCap = "round";
  for (const [token, width] of [["pitch-edge", 5], ["pitch", 2.25]]) {
    paint.strokeStyle = look.token(token);
    paint.lineWidth = width;
    paint.stroke(line);
  }
}
