/** Plans: so many kills, as folders of some lives each, and how each of those lives is to end. */
import { randomFrom } from "./random.mjs";

/** @typedef {import("./plan.mjs").End} End */
/** @typedef {import("./plan.mjs").FolderPlan} FolderPlan */
/** @typedef {import("./plan.mjs").Rules} Rules */

/** How many of the lives that end from outside do so right at an answer. */
const AT_AN_ANSWER = 0.4;

/** @param {Rules} rules */
export function planKills(seed, kills, rules) {
  const random = randomFrom(seed);
  const nextPoint = turns(rules.points, random);
  /** @type {FolderPlan[]} */
  const folders = [];
  for (let left = kills; left > 0; ) {
    const { lives, ends: weights, also = null } = rules.folders[random.weighted(shares(rules.folders))];
    const ends = [];
    while (ends.length < lives && left > 0) {
      const end = endOf(random.weighted(weights), random, nextPoint, rules);
      if (end.how !== "term") left -= 1;
      ends.push(end);
    }
    folders.push({ seed: random.between(0, 2 ** 31), also, ends });
  }
  return folders;
}

function shares(folders) {
  return Object.fromEntries(Object.entries(folders).map(([kind, { share }]) => [kind, share]));
}

/** Each in turn, in an order of its own each round. */
function turns(names, random) {
  let round = [];
  return () => {
    if (round.length === 0) round = [...names].sort(() => random.next() - 0.5);
    return round.pop();
  };
}

/** @returns {End} */
function endOf(how, random, nextPoint, { answers, passages, passagesOtherwise, beside = 0 }) {
  switch (how) {
    case "point": {
      const point = nextPoint();
      return { how, point, passage: random.between(1, passages[point] ?? passagesOtherwise) };
    }
    case "opening":
      return { how, delayMs: random.between(0, 22) };
    default: {
      const delayMs = random.chance(AT_AN_ANSWER) ? 0 : random.between(1, 120);
      const end = { how, answers: random.between(1, answers), delayMs };
      return random.chance(beside) ? { ...end, auditBeside: true } : end;
    }
  }
}
