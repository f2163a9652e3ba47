// SHA-256 (FIPS 180-4) of a file that is read piece by piece: the browser's own takes only what fits into memory, and only on https.

const PIECE_BYTES = 2 ** 20; // the page answers between two of them
const BLOCK_BYTES = 64;

// The first 32 bits of the fractional parts of the square (or cube) roots of the first primes.
function fractions(count, root) {
  const primes = [];
  for (let number = 2; primes.length < count; number += 1) {
    if (primes.every((prime) => number % prime)) primes.push(number);
  }
  return Int32Array.from(primes, (prime) => (root(prime) % 1) * 2 ** 32);
}

const CONSTANTS = fractions(64, Math.cbrt);

export class Sha256 {
  #state = fractions(8, Math.sqrt);
  #words = new Int32Array(64);
  #rest = new Uint8Array(BLOCK_BYTES);
  #bytes = 0;

  add(piece) {
    let at = 0;
    const open = this.#bytes % BLOCK_BYTES;
    this.#bytes += piece.length;
    if (open) {
      at = Math.min(BLOCK_BYTES - open, piece.length);
      this.#rest.set(piece.subarray(0, at), open);
      if (open + at < BLOCK_BYTES) return this;
      this.#mix(this.#rest, 0, BLOCK_BYTES);
    }
    const end = at + BLOCK_BYTES * Math.floor((piece.length - at) / BLOCK_BYTES);
    this.#mix(piece, at, end);
    this.#rest.set(piece.subarray(end));
    return this;
  }

  // The digest in hexadecimal digits; nothing may be added after it.
  end() {
    const bits = 8 * this.#bytes;
    const zeros = (2 * BLOCK_BYTES - 9 - (this.#bytes % BLOCK_BYTES)) % BLOCK_BYTES;
    const tail = new DataView(new ArrayBuffer(1 + zeros + 8));
    tail.setUint8(0, 0x80);
    tail.setUint32(1 + zeros, Math.floor(bits / 2 ** 32));
    tail.setUint32(5 + zeros, bits % 2 ** 32);
    this.add(new Uint8Array(tail.buffer));
    return [...this.#state].map((word) => (word >>> 0).toString(16).padStart(8, "0")).join("");
  }

  #mix(bytes, start, end) {
    const words = this.#words;
    let [s0, s1, s2, s3, s4, s5, s6, s7] = this.#state;
    for (let at = start; at < end; at += BLOCK_BYTES) {
      for (let t = 0, i = at; t < 16; t += 1, i += 4) {
        words[t] = (bytes[i] << 24) | (bytes[i + 1] << 16) | (bytes[i + 2] << 8) | bytes[i + 3];
      }
      for (let t = 16; t < 64; t += 1) {
        const x = words[t - 15];
        const y = words[t - 2];
        const small0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
        const small1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
        words[t] = (words[t - 16] + small0 + words[t - 7] + small1) | 0;
      }
      let a = s0, b = s1, c = s2, d = s3, e = s4, f = s5, g = s6, h = s7;
      for (let t = 0; t < 64; t += 1) {
        const big1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
        const first = (h + big1 + ((e & f) ^ (~e & g)) + CONSTANTS[t] + words[t]) | 0;
        const big0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
        const second = (big0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
        h = g;
        g = f;
        f = e;
        e = (d + first) | 0;
        d = c;
        c = b;
        b = a;
        a = (first + second) | 0;
      }
      s0 = (s0 + a) | 0;
      s1 = (s1 + b) | 0;
      s2 = (s2 + c) | 0;
      s3 = (s3 + d) | 0;
      s4 = (s4 + e) | 0;
      s5 = (s5 + f) | 0;
      s6 = (s6 + g) | 0;
      s7 = (s7 + h) | 0;
    }
    this.#state.set([s0, s1, s2, s3, s4, s5, s6, s7]);
  }
}

// Of a whole file; `told` is told how many bytes have been read. Fails where the file has changed since it was chosen.
export async function hashFile(file, told) {
  const digest = new Sha256();
  for (let start = 0; start < file.size; start += PIECE_BYTES) {
    const piece = await file.slice(start, start + PIECE_BYTES).arrayBuffer();
    digest.add(new Uint8Array(piece));
    told(Math.min(file.size, start + PIECE_BYTES));
  }
  return digest.end();
}
