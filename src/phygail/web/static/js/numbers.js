// Numbers that come out as in Python, bit for bit.

const TINY = 2 ** -54;
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-"; // 0 to 63

/** The numbers from 0 to 63 that the letters of a text stand for. */
export function readLetters(text) {
  return Uint8Array.from(text, (letter) => LETTERS.indexOf(letter));
}

/**
 * Length of (x, y) as glibc's hypot gives it, and with it numpy's: a square root with one correction.
 * Math.hypot differs from it in the last bit for every sixth pair, and a last bit can decide a tie.
 */
export function hypot(x, y) {
  const a = Math.abs(x), b = Math.abs(y);
  const ax = a < b ? b : a, ay = a < b ? a : b;
  if (ay <= ax * TINY) return ax + ay;
  const h = Math.sqrt(ax * ax + ay * ay);
  let t1, t2;
  if (h <= 2 * ay) {
    const delta = h - ay;
    t1 = ax * (2 * delta - ax);
    t2 = (delta - 2 * (ax - ay)) * delta;
  } else {
    const delta = h - ax;
    t1 = 2 * delta * (ax - 2 * ay);
    t2 = (4 * delta - ay) * ay + delta * delta;
  }
  return h - (t1 + t2) / (2 * h);
}

/** A small fast generator (sfc32) of the page's own seeds: the same numbers in every browser. */
export class Random {
  constructor(seed) {
    // splitmix32 fills the state, so that neighboring seeds have nothing in common.
    let s = seed >>> 0;
    const mix = () => {
      s = (s + 0x9e3779b9) | 0;
      let z = s ^ (s >>> 16);
      z = Math.imul(z, 0x21f0aaad);
      z ^= z >>> 15;
      z = Math.imul(z, 0x735a2d97);
      return z ^ (z >>> 15);
    };
    this.a = mix();
    this.b = mix();
    this.c = mix();
    this.counter = 1;
    for (let k = 0; k < 12; k++) this.word();
  }

  /** 32 random bits. */
  word() {
    const t = (((this.a + this.b) | 0) + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + t | 0;
    return t >>> 0;
  }

  /** Uniform in [0, 1). */
  uniform() {
    return this.word() / 4294967296;
  }

  /** Uniform in 0..n-1. */
  below(n) {
    return Math.floor(this.uniform() * n);
  }

  /** k different numbers of 0..n-1, ascending. */
  choose(n, k) {
    const deck = Array.from({ length: n }, (_, i) => i);
    for (let i = 0; i < k; i++) {
      const j = i + this.below(n - i);
      [deck[i], deck[j]] = [deck[j], deck[i]];
    }
    return deck.slice(0, k).sort((p, q) => p - q);
  }
}
