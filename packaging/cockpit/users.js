// The names of the users who changed something.
import { value } from "./elements.js";

const { cockpit } = window;
const names = new Map();

/** Asks for the names of users, from the system's databases of users, before rows with them are shown. */
export async function learn(rows) {
  const numbers = rows.map(({ attributes }) => /^uid:([0-9]+)$/.exec(attributes.get("by") ?? "")?.[1]);
  const asked = [...new Set(numbers)].filter((number) => number !== undefined && !names.has(number));
  if (asked.length === 0) return;
  // cockpit.spawn() returns no native promise. A user without a name makes the command fail, but it tells the others.
  const lines = await new Promise((done) => {
    const command = cockpit.spawn(["getent", "passwd", ...asked], { err: "ignore" });
    command.then(done, (_error, output) => done(output ?? ""));
  });
  for (const number of asked) names.set(number, undefined);
  for (const line of lines.split("\n")) {
    const [name, , number] = line.split(":");
    if (names.has(number)) names.set(number, name);
  }
}

/** A user by its name, or by the word of the daemon without one. */
export function user(by) {
  const shown = value(names.get(by.replace(/^uid:/, "")) ?? by);
  shown.title = by;
  return shown;
}
