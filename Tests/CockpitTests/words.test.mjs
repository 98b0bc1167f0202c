// The grammar of the line protocol, with the examples of the manual.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { MalformedLine, parseLine, parseWords, Refusal, requestLine } from "../../packaging/cockpit/words.js";
import { chooser } from "./chooser.mjs";
import { Daemon, root } from "./daemon.mjs";

/** The displays of the manual, each as its lines. */
const manual = readFileSync(join(root, "packaging/man/identityd-protocol.7"), "utf8")
  .split(/^\.Bd -literal.*\n/m)
  .slice(1)
  .map((part) => part.split("\n.Ed")[0].replaceAll("\\-", "-").replaceAll("\\e", "\\").replaceAll("\\(dq", '"'))
  .map((part) => part.split("\n"));

/** The conversations of the manual: requests, each with the lines of its reply. */
function conversation(lines) {
  const exchanges = [];
  for (const line of lines) {
    if (line.startsWith("> ")) exchanges.push({ request: line.slice(2), reply: [] });
    else exchanges.at(-1).reply.push(line);
  }
  return exchanges;
}

test("the lines of the manual's conversations are read", () => {
  let count = 0;
  for (const { reply } of manual.filter((lines) => lines[0].startsWith("> ")).flatMap(conversation)) {
    for (const line of reply.filter((line) => !line.includes("..."))) {
      const { kind } = parseLine(line);
      assert.equal(kind, { "*": "row", OK: "ok", ERR: "err", EVENT: "event" }[line.split(" ")[0]], line);
      count += 1;
    }
  }
  assert.ok(count > 80, `${count} lines`);
});

test("the manual's subscription is read word by word", () => {
  const lines = manual.find((lines) => lines[0] === "> subscribe device account snapshot=yes");
  const read = lines.filter((line) => !line.startsWith("> ")).map(parseLine);
  const [row, account, ok, , event, renewal] = read;
  assert.deepEqual([row.words, row.attributes.get("cause")], [["device"], "first-use"]);
  assert.deepEqual([account.words, account.attributes.get("value")], [["account"], ""]);
  assert.deepEqual([ok.kind, ok.words, [...ok.attributes.keys()]], ["ok", ["5"], ["epoch"]]);
  assert.deepEqual([event.sequence, event.topic, event.name], [6, "account", "changed"]);
  assert.equal(event.attributes.get("value"), "alice@example.org");
  assert.deepEqual([renewal.sequence, renewal.attributes.get("cause")], [7, "renewed"]);
});

test("the manual's requests get the manual's kind of reply, a byte in each message", async (context) => {
  const daemon = await new Daemon(context).start();
  const connection = daemon.connect({ split: true });
  // The example of a sealed store and those after it need a store of their own.
  const exchanges = manual.filter((lines) => lines[0].startsWith("> ")).flatMap(conversation);
  const verbs = ["ping", "hello", "help", "whoami", "check", "get", "resolve", "history", "account", "devices"];
  const harmless = new RegExp(`^(${verbs.join("|")}|version|machine compare|subscribe)\\b`);
  const asked = exchanges.filter(({ request }) => harmless.test(request) && !/^devices (forget|remove)/.test(request));
  assert.ok(asked.length > 25, `${asked.length} requests`);
  for (const { request, reply } of asked) {
    const { words, attributes } = parseWords(request);
    const final = reply.filter((line) => /^(OK|ERR)/.test(line)).at(-1);
    const outcome = await connection.ask(words, Object.fromEntries(attributes)).then(
      () => "OK",
      (error) => `ERR ${error.code}`,
    );
    assert.ok(final.startsWith(outcome), `${request}: ${outcome}, not ${final}`);
  }
});

test("words are read as the grammar says", () => {
  assert.deepEqual(parseWords('a  "b c" d="e f" "" x=y=z "q=r"'), {
    words: ["a", "b c", "", "q=r"],
    attributes: new Map([["d", "e f"], ["x", "y=z"]]),
  });
  assert.deepEqual(parseWords(String.raw`"\u00e9\n\"\\"`).words, ['é\n"\\']);
  assert.deepEqual([...parseWords("attr.Host=y").attributes], [["attr.host", "y"]]);
});

test("random words are read as they were written", () => {
  const letters = [..."aZ0 =\"\\/\n\t\u0001\u007f\u009b\u202e\ufeffé😀._-*"];
  const random = chooser(1);
  const upTo = (number) => random(Array.from({ length: number }, (_, place) => place));
  const word = () => Array.from({ length: upTo(8) }, () => random(letters)).join("");
  for (let round = 0; round < 2_000; round += 1) {
    const words = Array.from({ length: 1 + upTo(5) }, word);
    const attributes = { label: word(), "attr.x": word() };
    const line = requestLine(words, attributes);
    assert.doesNotMatch(line.slice(0, -1), /[\u0000-\u001f\u007f-\u009f]/, JSON.stringify(words));
    assert.deepEqual(parseWords(line.slice(0, -1)), { words, attributes: new Map(Object.entries(attributes)) });
  }
});

test("a malformed line is no reply", () => {
  const bad = ['* "a', '* "a"b', "* a\\b", "* a\tb", "* a=", '* "\\x"', "", "OKAY", "ERR", "ERR A b", "EVENT x y z"];
  for (const line of [...bad, "EVENT 1", "EVENT 1 device", "EVENT 99999999999999999999 a b", "* \u0085"]) {
    assert.throws(() => parseLine(line), MalformedLine, JSON.stringify(line));
  }
});

test("the message about a malformed line has no part of it", () => {
  const words = ['* secret-token "a', '* secret-token "\\x"'];
  for (const line of [...words, "secret-token", "ERR Secret-Token", "EVENT secret-token"]) {
    const isSilent = ({ message }) => !/secret/i.test(message) && message.includes(`of ${line.length} characters`);
    assert.throws(() => parseLine(line), isSilent, line);
  }
});

test("a request that the daemon would not read is not sent", () => {
  assert.equal(requestLine(["check", "a b"], { app: "x", no: undefined }), 'check "a b" app="x"\n');
  assert.equal(requestLine(["check", "\u009b1m\u007f"]), 'check "\\u009b1m\\u007f"\n');
  assert.equal(requestLine(["check", "é".repeat(49_147)]).length, 49_156);
  const tooLong = (error) => error instanceof Refusal && error.code === "too-long";
  assert.throws(() => requestLine(["check", "é".repeat(49_148)]), tooLong);
});

test("the daemon returns the words that it got", async (context) => {
  const daemon = await new Daemon(context).start();
  const connection = daemon.connect({ split: true });
  const hostile = ["two words", 'a"b\\c', "\u202egnp", "a\nEVENT 1 a b", "<b>&amp;", "é😀", "\u0085\u009b"];
  hostile.push("\ufeffx", "x=y");
  for (const service of hostile) await connection.ask(["item", "put"], { service, account: "a", data: "eA==" });
  const { rows } = await connection.ask(["item", "find"], {});
  assert.deepEqual(rows.map((row) => row.attributes.get("service")).sort(), [...hostile].sort());
});
