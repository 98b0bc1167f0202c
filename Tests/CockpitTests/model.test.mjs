// The model of a real store, from snapshots and from events.
import assert from "node:assert/strict";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { KEPT_EVENTS, Model } from "../../packaging/cockpit/model.js";
import { chooser } from "./chooser.mjs";
import { Daemon, until } from "./daemon.mjs";

/** The values of a model in a form that can be compared. */
function values(model) {
  const sorted = (map) => [...map].sort(([one], [other]) => (one < other ? -1 : 1));
  return {
    device: model.device,
    account: model.account,
    devices: sorted(model.devices).map(([value]) => value),
    apps: sorted(model.apps).map(([, app]) => ({ ...app, tokens: sorted(app.tokens) })),
    vendors: sorted(model.vendors),
    items: sorted(model.items).map(([group, items]) => [group, sorted(items)]),
    system: model.system,
  };
}

/** Asks for a snapshot and the events that led to it, and applies the chosen ones. */
async function load(daemon, { rows = true, events = true } = {}) {
  const connection = daemon.connect();
  const model = new Model();
  const reply = await connection.ask(["subscribe"], { since: 0, snapshot: "yes" });
  model.begin();
  if (rows) for (const row of reply.rows) model.row(row.words[0], row.attributes);
  const status = await connection.ask(["status"], {});
  const last = Number(status.rows.find((row) => row.attributes.has("last-event")).attributes.get("last-event"));
  await until(() => connection.events.at(-1)?.sequence === last, "the last event");
  if (events) for (const event of connection.events) model.event(event);
  connection.close();
  return model;
}

/** An app by a manifest, with a device identifier of its own. */
const OWN = "org.example.own";

/** Installs the app, or uninstalls it. */
async function install(daemon, isInstalled) {
  const manifest = join(daemon.folder, "apps.d", `${OWN}.app`);
  const text = "[App]\nVendor=org.example\nUnit=own.service\nDeviceIdentifier=app\n";
  const connection = daemon.connect();
  if (isInstalled) {
    await writeFile(manifest, text);
  } else {
    await rm(manifest);
    await connection.ask(["app", "forget", OWN], {});
  }
  const isListed = async () => (await connection.ask(["app", "list"], {})).rows.some(({ words }) => words[0] === OWN);
  const end = Date.now() + 20_000;
  while ((await isListed()) !== isInstalled) assert.ok(Date.now() < end, "the manifest is not read");
  if (isInstalled) await connection.ask(["get", "device"], { app: OWN });
  connection.close();
}

async function change(daemon, choose, steps) {
  const connection = daemon.connect();
  const apps = ["org.example.a", "org.example.b", "unit:x.service"];
  for (let step = 0; step < steps; step += 1) {
    const app = choose(apps);
    const number = choose(["1", "2", "3"]);
    const self = choose([{}, { app: OWN }]);
    const [words, attributes] = choose([
      [["get", "installation"], self],
      [["get", "vendor"], self],
      [["get", "device"], self],
      [["renew", choose(["device", "installation", "vendor"])], self],
      [["machine", "resumed"], {}],
      [["item", "put"], { service: number, account: choose(["a", "b"]), data: "eA==" }],
      [["item", "delete"], { service: number }],
      [["token", "put", choose(["fcm", "apns"]), `token-${number}`], self],
      [["token", "invalidate", "fcm", `token-${number}`], self],
      [["token", "delete", "fcm"], self],
      [["version", "report", `1.${number}`], self],
      [["account", "set", `name-${number}`], {}],
      [["devices", "put", `557e5958-d390-4cbf-b928-2a2b19a1399${number}`], { name: `n${number}` }],
      [["devices", "forget", `557e5958-d390-4cbf-b928-2a2b19a1399${number}`], {}],
      [["app", "forget", "user:0"], {}],
      [["app", "forget", app], {}],
    ]);
    const refused = (error) => assert.notEqual(error.code, "bad-argument", error.message);
    await connection.ask(words, attributes).catch(refused);
  }
  connection.close();
}

test("events alone, a snapshot alone, and events replayed over a snapshot end in the same values", async (context) => {
  const daemon = new Daemon(context);
  const folder = join(daemon.folder, "apps.d");
  await mkdir(folder);
  await daemon.start(`[Apps]\nDirectories=${folder}\n`);
  for (const seed of [1, 2, 3, 4]) {
    const isInstalled = seed % 2 === 1;
    await install(daemon, isInstalled);
    await change(daemon, chooser(seed), 120);
    const snapshot = await load(daemon, { events: false });
    const replayed = await load(daemon);
    const events = await load(daemon, { rows: false });
    // A snapshot does not tell which tokens are invalid.
    for (const app of snapshot.apps.values()) {
      const tokens = replayed.apps.get(app.name)?.tokens;
      for (const [provider, token] of app.tokens) token.isInvalid = tokens?.get(provider)?.isInvalid;
    }
    assert.deepEqual(values(replayed), values(snapshot));
    assert.deepEqual(values(events), values(snapshot));
    assert.ok(snapshot.apps.get(OWN).device, "an app that is gone keeps its device identifier");
    assert.equal(snapshot.installedApps().some(({ name }) => name === OWN), isInstalled);
  }
});

test("an app that replaces another one has all that the other one had", async (context) => {
  const daemon = new Daemon(context);
  const folder = join(daemon.folder, "apps.d");
  await mkdir(folder);
  await daemon.start(`[Apps]\nDirectories=${folder}\n`);
  await install(daemon, true);
  const connection = daemon.connect();
  await connection.ask(["get", "installation"], { app: OWN });
  await connection.ask(["token", "put", "fcm", "token"], { app: OWN });
  await connection.ask(["item", "put"], { service: "s", account: "a", group: OWN, data: "eA==" });
  const before = (await load(daemon, { rows: false })).apps.get(OWN);
  assert.ok(before.installation && before.device && before.tokens.size === 1);
  const text = "[App]\nVendor=org.example\nUnit=own.service\nDeviceIdentifier=app\n";
  await writeFile(join(folder, "org.example.new.app"), `${text}Replaces=${OWN}\n`);
  await rm(join(folder, `${OWN}.app`));
  const isListed = async () => (await connection.ask(["app", "list"], {})).rows.some(({ words }) => words[0] !== OWN);
  const end = Date.now() + 20_000;
  while (!(await isListed())) assert.ok(Date.now() < end, "the manifest is not read");
  connection.close();
  const events = await load(daemon, { rows: false });
  assert.deepEqual(values(events), values(await load(daemon, { events: false })));
  assert.deepEqual(events.apps.get("org.example.new"), { ...before, name: "org.example.new" });
  assert.equal(events.itemCount("org.example.new"), 1);
});

test("the states of tokens come from their list", async (context) => {
  const daemon = await new Daemon(context).start();
  const connection = daemon.connect();
  await connection.ask(["token", "put", "fcm", "secret-of-the-sender"], {});
  await connection.ask(["token", "invalidate", "fcm", "secret-of-the-sender"], {});
  const model = await load(daemon, { events: false });
  const tokens = () => [...model.apps.values()][0].tokens;
  assert.equal(tokens().get("fcm").isInvalid, false);
  for (const row of (await connection.ask(["token", "list"], {})).rows) model.tokenState(row.attributes);
  assert.equal(tokens().get("fcm").isInvalid, true);
  assert.ok(!JSON.stringify(values(model)).includes("secret"));
});

test("only the latest events are kept, and a gap is among them", () => {
  const model = new Model();
  for (let sequence = 1; sequence <= 1_000; sequence += 1) {
    model.event({ sequence, topic: "account", name: "changed", attributes: new Map([["value", `${sequence}`]]) });
  }
  model.missed(7);
  assert.equal(model.events.length, KEPT_EVENTS);
  assert.deepEqual(model.events.at(-1), { missed: 7 });
  assert.equal(model.events[0].sequence, 1_002 - KEPT_EVENTS);
  assert.equal(model.account, "1000");
});

test("events that come again after a lag are listed once, and those that were missed fill the gap", () => {
  const model = new Model();
  const tell = (first, last) => {
    for (let sequence = first; sequence <= last; sequence += 1) {
      model.event({ sequence, topic: "account", name: "changed", attributes: new Map([["value", `${sequence}`]]) });
    }
  };
  const listed = () => model.events.map(({ sequence, missed }) => sequence ?? `${missed} missed`);
  tell(1, 3);
  model.missed(4);
  tell(2, 8);
  assert.deepEqual(listed(), [1, 2, 3, 4, 5, 6, 7, 8]);
  model.missed(5);
  tell(12, 14);
  assert.deepEqual(listed().slice(7), [8, "3 missed", 12, 13, 14]);
  // The numbers of another epoch begin anew.
  model.missed(undefined);
  tell(1, 2);
  assert.deepEqual(listed().slice(11), [14, "undefined missed", 1, 2]);
  assert.equal(model.account, "2");
});

test("names of JavaScript's own objects are names like others", () => {
  const model = new Model();
  for (const app of ["__proto__", "constructor", "toString"]) {
    model.row("app", new Map([["app", app], ["vendor", app]]));
    model.row("item", new Map([["group", app], ["service", "s"], ["account", "a"]]));
    assert.equal(model.itemCount(app), 1);
  }
  assert.deepEqual([...model.apps.keys()], ["__proto__", "constructor", "toString"]);
});
