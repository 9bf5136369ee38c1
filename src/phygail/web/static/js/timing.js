// How long things took, for the benchmark: only the last of them are kept.
const MOST = 2000;

export const timing = {
  frames: 0,
  steps: [], // ms per step of all lanes
  draws: [], // ms per picture of all lanes
  strikes: [], // ms from a press to the picture that shows it
  pressed: null,
};

/** Remember one duration. */
export function note(list, ms) {
  list.push(ms);
  if (list.length > MOST) list.splice(0, MOST / 2);
}
