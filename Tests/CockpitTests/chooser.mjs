// Choices that look random, and are the same in each run.

/** Chooses from a list, always the same choices. */
export function chooser(seed) {
  let state = seed;
  return (list) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return list[Math.floor((state / 2_147_483_648) * list.length)];
  };
}
