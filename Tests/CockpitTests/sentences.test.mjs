// The sentences of events, for each event in the manual of the protocol.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import "./document.mjs";

const { sentence } = await import("../../packaging/cockpit/sentences.js");
const { format } = await import("../../packaging/cockpit/elements.js");

const manual = readFileSync(new URL("../../packaging/man/identityd-protocol.7", import.meta.url), "utf8");
const section = manual.split(".Ss Event lines")[1].split("\nNo event reports")[0];

/** The events of the manual: topics, names and attributes. */
const blocks = section.split("\n.It Cm ").slice(1).map((block) => {
  const topics = block.split("\n")[0].split(" , ");
  const before = block.split("\nwith\n")[0].split("\n").slice(1);
  const words = before.filter((line) => line.startsWith(".Cm ")).flatMap((line) => line.slice(4).split(/[ ,]+/));
  const names = words.filter((word) => word !== "" && !topics.includes(word));
  const attributes = [...block.split("\nwith\n")[1].split("\n")[0].matchAll(/([a-z-]+)=/g)].map(([, name]) => name);
  return { topics, names, attributes };
});

/** The events that an installation and a vendor do not have. */
const ONLY_OF_THE_DEVICE = ["suspect", "acknowledged", "resumed"];

test("each event of the manual has a sentence with its values", () => {
  let count = 0;
  for (const { topics, names, attributes } of blocks) {
    for (const topic of topics) {
      for (const name of names) {
        if (["installation", "vendor"].includes(topic) && ONLY_OF_THE_DEVICE.includes(name)) continue;
        const values = new Map(attributes.map((name) => [name, `the-${name}`]));
        const told = sentence({ topic, name, attributes: values });
        if (topic === "device" && ONLY_OF_THE_DEVICE.includes(name)) {
          // These have no app and no vendor.
          for (const owner of ["app", "vendor"]) values.delete(owner);
          assert.ok(sentence({ topic, name, attributes: values }), `${topic} ${name}`);
        } else {
          assert.ok(told, `${topic} ${name}`);
          const text = format(told.text, ...told.values);
          assert.doesNotMatch(text, /\$[0-9]|undefined/, `${topic} ${name}`);
          assert.match(text, /the-/, `${topic} ${name}`);
        }
        count += 1;
      }
    }
  }
  assert.equal(count, 39);
});

const event = (topic, name, values) => sentence({ topic, name, attributes: new Map(Object.entries(values)) });
const text = (told) => format(told.text, ...told.values);

test("events of one name tell different things", () => {
  const uuid = "557e5958-d390-4cbf-b928-2a2b19a1399a";
  const created = { value: uuid, cause: "first-use" };
  assert.equal(text(event("device", "created", created)), `This device has the identifier ${uuid} (first use).`);
  const own = text(event("device", "created", { ...created, app: "org.example.play" }));
  assert.equal(own, `org.example.play has the device identifier ${uuid} of its own (first use).`);
  assert.equal(text(event("account", "changed", { value: "" })), "This device is in no account.");
  assert.match(text(event("devices", "changed", { value: uuid, suspect: "yes" })), /^Another machine may speak/);
  assert.match(text(event("devices", "changed", { value: uuid, suspect: "no" })), /^No other machine speaks/);
  assert.match(text(event("devices", "changed", { value: uuid, name: "web-1" })), /has the name web-1\.$/);
  const before = { "previous-id": "debian", previous: "12", "previous-build": "7" };
  const upgrade = text(event("version", "upgraded", { of: "os", id: "debian", version: "13", ...before }));
  assert.equal(upgrade, "The system is upgraded from version debian 12 (7) to debian 13.");
});

test("an event of a later daemon has no sentence", () => {
  assert.equal(event("device", "polished", { value: "x" }), null);
  assert.equal(event("toString", "created", {}), null);
  assert.equal(event("token", "created", { app: "x" }), null, "a value is missing");
  const ended = text(event("device", "ended", { value: "x", cause: "moved" }));
  assert.equal(ended, "The identifier x of this device has ended (moved).");
});
