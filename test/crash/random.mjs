/** A seeded source of choices: the same seed makes the same plan. */

/** @typedef {ReturnType<typeof randomFrom>} Random */

/** @param {number} seed */
export function randomFrom(seed) {
  let state = seed >>> 0;
  /** mulberry32: 0 <= number < 1. */
  function next() {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  /** A whole number from `least` to `most`, both included. */
  const between = (/** @type {number} */ least, /** @type {number} */ most) =>
    least + Math.floor(next() * (most - least + 1));
  return {
    next,
    between,
    chance: (/** @type {number} */ probability) => next() < probability,
    /** @template T @param {readonly T[]} from @returns {T} */
    pick: (from) => from[Math.floor(next() * from.length)],
    /** One of the names, by their weights. @param {Record<string, number>} weights */
    weighted(weights) {
      let left = next() * Object.values(weights).reduce((sum, one) => sum + one, 0);
      for (const [name, weight] of Object.entries(weights)) {
        left -= weight;
        if (left < 0) return name;
      }
      return Object.keys(weights)[0];
    },
  };
}
