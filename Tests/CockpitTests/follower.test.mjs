// Following the daemon over its restarts, its absence and its refusals.
import assert from "node:assert/strict";
import { open as openFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { Follower } from "../../packaging/cockpit/follower.js";
import { Channel, Daemon, isRoot, until } from "./daemon.mjs";

const NOBODY = 65_534;

/** A follower that notes all that it tells. While `isCutOff` is true, it reaches no daemon. */
function follow(context, daemon, { channel = {}, pauses = { first: 20, longest: 400 } } = {}) {
  const noted = { states: [], moments: [], begins: 0, rows: [], events: [], missed: [], opened: [], opening: [] };
  noted.isCutOff = false;
  const open = (asAdmin) => {
    noted.opened.push(asAdmin);
    noted.opening.push(performance.now());
    const path = noted.isCutOff ? `${daemon.socket}-of-nobody` : daemon.socket;
    return new Channel(path, typeof channel === "function" ? channel(asAdmin) : channel);
  };
  noted.follower = new Follower(
    open,
    {
      state: (state) => (noted.states.push(state), noted.moments.push(performance.now())),
      begin: () => ((noted.begins += 1), (noted.rows = [])),
      row: (topic, attributes) => noted.rows.push([topic, attributes]),
      event: (event) => noted.events.push(event),
      missed: (number) => noted.missed.push(number),
    },
    pauses,
  );
  context.after(() => noted.follower.stop());
  noted.reaches = (name) => until(() => noted.follower.state.name === name, name);
  const accounts = () => noted.events.filter(({ topic }) => topic === "account");
  noted.accounts = () => accounts().map(({ attributes }) => attributes.get("value"));
  return noted;
}

async function setAccounts(daemon, ...names) {
  const connection = daemon.connect();
  for (const name of names) await connection.ask(["account", "set", name], {});
  connection.close();
}

test("the values come first, and the events before and after them once each", async (context) => {
  const daemon = await new Daemon(context).start();
  await setAccounts(daemon, "a", "b");
  const noted = follow(context, daemon, { channel: { split: true } });
  await noted.reaches("following");
  await setAccounts(daemon, "c");
  await until(() => noted.accounts().includes("c"), "the last event");
  assert.deepEqual(noted.accounts(), ["a", "b", "c"]);
  assert.equal(noted.rows.find(([topic]) => topic === "account")[1].get("value"), "b");
  assert.deepEqual([noted.begins, noted.missed, noted.opened], [1, [], [false]]);
  assert.equal(noted.follower.isAdmin, isRoot);
});

test("a daemon that is killed and started again is followed without a gap", async (context) => {
  const daemon = await new Daemon(context).start();
  const noted = follow(context, daemon);
  await noted.reaches("following");
  await setAccounts(daemon, "a");
  await until(() => noted.accounts().length === 1, "the event");
  await daemon.end();
  await noted.reaches("lost");
  await daemon.start();
  await setAccounts(daemon, "b");
  await noted.reaches("following");
  await until(() => noted.accounts().length === 2, "the event after the start");
  assert.deepEqual([noted.accounts(), noted.begins, noted.missed], [["a", "b"], 1, []]);
});

test("another store is loaded anew, although it has reached the same number", async (context) => {
  const daemon = await new Daemon(context).start();
  await setAccounts(daemon, "a", "b");
  const noted = follow(context, daemon);
  await noted.reaches("following");
  noted.isCutOff = true;
  await daemon.end();
  await rm(daemon.state, { recursive: true });
  await daemon.start();
  await setAccounts(daemon, "c", "d", "e");
  noted.isCutOff = false;
  await until(() => noted.begins === 2, "the second snapshot");
  assert.equal(noted.rows.find(([topic]) => topic === "account")[1].get("value"), "e");
  assert.deepEqual(noted.missed, [undefined]);
});

test("a daemon that is missing is sought with growing pauses", async (context) => {
  const daemon = new Daemon(context);
  const noted = follow(context, daemon, { pauses: { first: 30, longest: 240 } });
  await until(() => noted.opening.length >= 6, "six attempts");
  const pauses = noted.opening.slice(1).map((moment, place) => moment - noted.opening[place]);
  [30, 60, 120, 240, 240].forEach((pause, place) => assert.ok(pauses[place] > pause * 0.9, `${pauses}`));
  await assert.rejects(noted.follower.ask(["ping"], {}), { name: "Disconnected" });
  await daemon.start();
  await noted.reaches("following");
});

test("a damaged store is told, and asked again with growing pauses on the same connection", async (context) => {
  const daemon = await new Daemon(context).start();
  await setAccounts(daemon, ...Array.from({ length: 40 }, (_, number) => `name-${number}`));
  await daemon.end("SIGTERM");
  const file = await openFile(join(daemon.state, "identityd.db"), "r+");
  const { size } = await file.stat();
  const fault = Buffer.alloc(2_048, 0xa5);
  for (let place = 4_096; place < size; place += 4_096) await file.write(fault, 0, fault.length, place + 1_024);
  await file.close();
  await daemon.start();
  const noted = follow(context, daemon, { pauses: { first: 50, longest: 200 } });
  await noted.reaches("refused");
  await until(() => noted.states.length >= 4, "three further attempts");
  const pauses = noted.moments.slice(1).map((moment, place) => moment - noted.moments[place]);
  [50, 100, 200].forEach((pause, place) => assert.ok(pauses[place] > pause * 0.9, `${pauses}`));
  const { error } = noted.follower.state;
  assert.ok(["internal", "unavailable"].includes(error.code), `${error.code} ${error.message}`);
  assert.equal(noted.begins, 0);
  assert.equal(noted.opened.length, isRoot ? 2 : 1, `${noted.opened}: ${error.code} ${error.message}`);
  const { rows } = await noted.follower.ask(["status"], {});
  assert.ok(rows.some((row) => row.attributes.get("store") === "damaged"));
});

/** A follower that stops reading until it has missed events, and the last of their names. */
async function lag(context, daemon, options) {
  const channels = [];
  const slow = follow(context, daemon, { channel: { made: (channel) => channels.push(channel) }, ...options });
  await slow.reaches("following");
  channels[0].input.pause();
  const names = Array.from({ length: 6_000 }, (_, number) => `${number}-${"x".repeat(240)}`);
  const writer = daemon.connect();
  for (let place = 0; place < names.length; place += 250) {
    await Promise.all(names.slice(place, place + 250).map((name) => writer.ask(["account", "set", name], {})));
  }
  channels[0].input.resume();
  await until(() => slow.missed.length === 1, "the lag");
  assert.ok(slow.missed[0] > 0, `${slow.missed}`);
  return { slow, last: names.at(-1) };
}

test("a subscriber that stopped reading loads the values anew", async (context) => {
  const daemon = await new Daemon(context).start();
  const { slow, last } = await lag(context, daemon);
  await until(() => slow.begins === 2, "the second snapshot");
  await slow.reaches("following");
  assert.deepEqual(slow.states.map(({ name }) => name), ["following", "connecting", "following"]);
  assert.equal(slow.rows.find(([topic]) => topic === "account")[1].get("value"), last);
  assert.equal(slow.missed.length, 1);
});

test("a subscriber that stopped reading learns that another store has taken the place", async (context) => {
  const daemon = await new Daemon(context).start();
  const { slow } = await lag(context, daemon, { pauses: { first: 200, longest: 400 } });
  slow.isCutOff = true;
  await daemon.end();
  await rm(daemon.state, { recursive: true });
  await daemon.start();
  slow.isCutOff = false;
  await until(() => slow.begins === 2, "the second snapshot");
  assert.deepEqual(slow.missed.slice(1), [undefined]);
});

test("a user with too many connections waits for an end", { skip: !isRoot && "needs root" }, async (context) => {
  const daemon = await new Daemon(context).start("[Limits]\nConnectionsPerUser=1\n");
  const other = daemon.connect({ user: NOBODY });
  await other.ask(["ping"], {});
  const noted = follow(context, daemon, { channel: { user: NOBODY } });
  await noted.reaches("refused");
  assert.equal(noted.follower.state.error.code, "busy");
  await until(() => noted.opened.length >= 4, "four attempts");
  other.close();
  await noted.reaches("following");
});

test("a refusal makes the next snapshot necessary", { skip: !isRoot && "needs root" }, async (context) => {
  const daemon = await new Daemon(context).start();
  await setAccounts(daemon, "a");
  const noted = follow(context, daemon, { channel: { user: NOBODY } });
  await noted.reaches("following");
  noted.isCutOff = true;
  await daemon.end();
  await daemon.start("[Limits]\nConnectionsPerUser=1\n");
  const other = daemon.connect({ user: NOBODY });
  await other.ask(["ping"], {});
  noted.isCutOff = false;
  await noted.reaches("refused");
  assert.equal(noted.follower.state.error.code, "busy");
  other.close();
  await noted.reaches("following");
  assert.equal(noted.begins, 2);
  assert.equal(noted.rows.find(([topic]) => topic === "account")[1].get("value"), "a");
});

test("a user without rights is no admin, even if it asks", { skip: !isRoot && "needs root" }, async (context) => {
  const daemon = await new Daemon(context).start();
  await setAccounts(daemon, "a");
  const noted = follow(context, daemon, { channel: { user: NOBODY } });
  await noted.reaches("following");
  assert.deepEqual([noted.opened, noted.follower.isAdmin], [[false, true], false]);
  assert.equal(noted.follower.whoami.get("app"), `user:${NOBODY}`);
});

test("a user with administrative access is an admin", { skip: !isRoot && "needs root" }, async (context) => {
  const daemon = await new Daemon(context).start();
  await setAccounts(daemon, "a");
  const noted = follow(context, daemon, { channel: (asAdmin) => (asAdmin ? {} : { user: NOBODY }) });
  await noted.reaches("following");
  assert.deepEqual([noted.opened, noted.follower.isAdmin, noted.accounts()], [[false, true], true, ["a"]]);
});
