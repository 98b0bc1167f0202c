// The table of apps with many apps, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Model } from "../../packaging/cockpit/model.js";
import { made, placeOf } from "./document.mjs";

const apps = await import("../../packaging/cockpit/apps.js");
const events = await import("../../packaging/cockpit/events.js");

const UUID = "557e5958-d390-4cbf-b928-2a2b19a1399a";

/** A page with so many apps, each with an installation, a version, a token and an item. */
function pageOf(count) {
  const model = new Model();
  const row = (topic, values) => model.row(topic, new Map(Object.entries(values)));
  for (let number = 0; number < count; number += 1) {
    const app = `org.example.app${String(number).padStart(5, "0")}`;
    row("app", { app, vendor: "org.example" });
    row("installation", { app, value: UUID, cause: "first-use" });
    row("version", { of: "app", app, version: `1.${count}` });
    row("token", { app, provider: "fcm", device: UUID, fingerprint: "0123" });
    row("item", { group: app, service: "s", account: "a" });
  }
  return { model, wasFollowing: true, follower: { isAdmin: true } };
}

/** Draws the table, and returns the number of elements in it and of those that were made. */
function draw(page) {
  const before = made.count;
  apps.drawApps(page, () => {});
  return { size: placeOf("#apps-table").size, made: made.count - before };
}

test("10,000 apps take as many elements as 100, on each page and with a filter", (context) => {
  // The first drawing makes the places of the page, too.
  draw(pageOf(0));
  const few = draw(pageOf(100));
  assert.equal(few.made, few.size);
  const begin = performance.now();
  const page = pageOf(10_000);
  const filled = performance.now();
  assert.deepEqual(draw(page), few);
  const drawn = performance.now();
  assert.equal(placeOf("#apps-page").textContent, "Page 1 of 200");
  assert.equal(placeOf("#apps-count").textContent, "10000");
  assert.deepEqual(draw(page), { size: few.size, made: 0 }, "nothing is made again");
  apps.choice.page = 150;
  assert.deepEqual(draw(page), few);
  assert.ok(placeOf("#apps-table").texts.includes("org.example.app07500"));
  Object.assign(apps.choice, { text: "APP0999", page: 0 });
  const typed = performance.now();
  assert.ok(draw(page).size < few.size);
  const filtered = performance.now();
  assert.equal(placeOf("#apps-table").texts.filter((text) => text.startsWith("org.example.app")).length, 10);
  const took = (from, to) => `${Math.round(to - from)} ms`;
  const times = [took(begin, filled), took(filled, drawn), took(typed, filtered)];
  context.diagnostic(`50,000 rows of a snapshot: ${times[0]}; the first drawing: ${times[1]}; a filter: ${times[2]}`);
  apps.choice.text = "";
});

test("10,000 events take as many elements as the list keeps", () => {
  const sizes = [200, 10_000].map((count) => {
    const page = pageOf(0);
    for (let sequence = 1; sequence <= count; sequence += 1) {
      const attributes = new Map([["value", "x"], ["time", "2026-11-25T12:00:00.000Z"]]);
      page.model.event({ sequence, topic: "account", name: "changed", attributes });
    }
    events.drawEvents(page);
    return placeOf("#events-table").size;
  });
  assert.ok(sizes[0] > 200);
  assert.equal(sizes[1], sizes[0]);
});
