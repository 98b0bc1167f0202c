// The words of the page about the connection, and about a daemon that is in order, without a browser.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Disconnected } from "../../packaging/cockpit/wire.js";
import { MalformedLine, Refusal } from "../../packaging/cockpit/words.js";

const german = new Map();
globalThis.window = { cockpit: { gettext: (text) => german.get(text) ?? text } };
const { notices, SOCKET, summary } = await import("../../packaging/cockpit/notices.js");

/** A page whose daemon is in order, but for the given parts. */
function page({ name = "following", error, isAdmin = true, ...parts } = {}) {
  const status = { values: new Map([["store", "ok"]]), manifestFaults: [] };
  const follower = { state: { name, error }, isAdmin, whoami: new Map([["app", "user:0"]]) };
  return { follower, status, report: { checks: [], findings: [] }, isFollowing: name === "following", ...parts };
}

const summaryOf = (parts) => summary(page(parts), notices(page(parts)));

test("nothing is said to be in order before all answers are there", () => {
  assert.deepEqual(summaryOf({}), { kind: "good", text: "in order" });
  assert.deepEqual(summaryOf({ name: "connecting" }), { kind: "none", text: "connecting …" });
  assert.deepEqual(summaryOf({ isChecking: true }), { kind: "none", text: "checking …" });
  for (const parts of [{ report: undefined }, { report: null }, { status: null }]) {
    assert.deepEqual(summaryOf(parts), { kind: "none", text: "not known" });
  }
});

test("a daemon that does not answer is told with the cause that the check found", () => {
  const failed = { check: "unit", result: "failed", cause: "identityd.service ends again and again" };
  const note = { check: "master-key", result: "info", cause: "a file" };
  const silent = (findings) => ({ name: "connecting", isOverdue: true, status: null, report: { checks: [], findings } });
  assert.deepEqual(notices(page({ name: "connecting" })), []);
  const [told] = notices(page(silent([note, failed])));
  assert.match(told.title, /^identityd is not running/);
  assert.equal(told.text, "unit: identityd.service ends again and again");
  assert.equal(summaryOf(silent([failed])).kind, "bad");
  assert.match(notices(page(silent([note])))[0].title, /^identityd has not answered/);
});

test("the worst is told, even if an answer is missing", () => {
  const findings = (...results) => ({ checks: [], findings: results.map((result) => ({ result })) });
  assert.equal(summaryOf({ report: findings("info") }).kind, "good");
  assert.equal(summaryOf({ report: findings("warning") }).kind, "warning");
  assert.equal(summaryOf({ report: findings("warning", "failed") }).kind, "bad");
  assert.equal(summaryOf({ report: findings("failed"), status: null }).kind, "bad");
  const status = { values: new Map([["store", "damaged"], ["store-reason", "malformed"]]), manifestFaults: [] };
  assert.equal(summaryOf({ status, report: null }).kind, "bad");
});

test("a daemon that does not run is told from one that cannot be followed, each with the reason", () => {
  const nameOf = (error) => (error instanceof Refusal ? "refused" : "lost");
  const told = (error) => notices(page({ name: nameOf(error), error, status: null }))[0];
  const gone = told(new Disconnected("not-found"));
  assert.match(gone.title, /is not running/);
  assert.equal(gone.text, `${SOCKET}\nThere is no socket.`);
  const malformed = told(new MalformedLine(7, "it is too long"));
  assert.match(malformed.title, /cannot follow the daemon/);
  assert.match(malformed.text, /of 7 characters: it is too long$/);
  german.set("the daemon sent a malformed line of $0 characters: $1", "fehlerhafte Zeile mit $0 Zeichen: $1");
  german.set("the word at character $0 cannot be read", "das Wort ab Zeichen $0 ist nicht lesbar");
  const { text } = told(new MalformedLine(9, "the word at character $0 cannot be read", 4));
  assert.equal(text, `${SOCKET}\nfehlerhafte Zeile mit 9 Zeichen: das Wort ab Zeichen 4 ist nicht lesbar`);
  assert.equal(told(new TypeError("bad\u202e")).text, `${SOCKET}\nbad\\u202e`);
  assert.equal(told(new Refusal("busy", "later")).text, "busy: later");
});
