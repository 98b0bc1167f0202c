// The order of requests, replies and events, and the limits of a connection.
import assert from "node:assert/strict";
import net from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Connection, Disconnected, LONGEST_LINE, MOST_REQUESTS } from "../../packaging/cockpit/wire.js";
import { MalformedLine, Refusal } from "../../packaging/cockpit/words.js";
import { Channel, Daemon, until } from "./daemon.mjs";

/** A played daemon that writes the same to every client. */
async function played(context, text, folder) {
  const server = net.createServer((socket) => {
    socket.on("error", () => {});
    socket.write(text);
  });
  const path = join(folder, "played");
  await new Promise((done) => server.listen(path, done));
  context.after(() => server.close());
  let end = null;
  const told = { event: () => {}, lag: () => {}, ended: (error) => (end = error) };
  const connection = new Connection(new Channel(path), told);
  return { connection, ended: async () => (await until(() => end !== null, "the end"), end) };
}

test("replies come in the order of the requests, refusals among them", async (context) => {
  const daemon = await new Daemon(context).start();
  const connection = daemon.connect({ split: true });
  const replies = [];
  for (let number = 1; number <= 200; number += 1) {
    const request = number % 3 === 0 ? ["frob", String(number)] : ["get", "uuid"];
    const failed = (error) => replies.push(error.code);
    const count = number % 3 === 0 ? undefined : number;
    connection.send(request, { count }, (reply) => replies.push(reply.rows.length), failed);
  }
  await connection.ask(["ping"], {});
  const expected = Array.from({ length: 200 }, (_, place) => ((place + 1) % 3 === 0 ? "unknown-verb" : place + 1));
  assert.deepEqual(replies, expected);
});

test("events in one message with the reply before them are told after it", async (context) => {
  const daemon = await new Daemon(context).start();
  const messages = [];
  const keep = (_event, data) => messages.push(`${Buffer.from(data)}`);
  const made = (channel) => channel.addEventListener("message", keep);
  const connection = daemon.connect({ gather: "value=b", made });
  const order = [];
  const note = (what) => () => order.push([what, connection.events.length]);
  connection.send(["subscribe"], { snapshot: "yes" }, note("subscribed"), assert.fail);
  for (const name of ["a", "b"]) connection.send(["account", "set", name], {}, note(name), assert.fail);
  await connection.ask(["ping"], {});
  await until(() => connection.events.length === 2, "two events");
  assert.match(messages[0], /^OK [^]*\nEVENT [^]*value=a[^]*\nEVENT [^]*value=b/m);
  assert.deepEqual(order[0], ["subscribed", 0]);
  assert.deepEqual(order.map(([what]) => what), ["subscribed", "a", "b"]);
  assert.deepEqual(connection.events.map((event) => event.attributes.get("value")), ["a", "b"]);
});

test("requests beyond the limit are refused, and the others answered", async (context) => {
  const daemon = await new Daemon(context).start();
  const connection = daemon.connect();
  const requests = Array.from({ length: MOST_REQUESTS + 5 }, () => connection.ask(["ping"], {}));
  const outcomes = await Promise.allSettled(requests);
  assert.equal(outcomes.filter(({ status }) => status === "fulfilled").length, MOST_REQUESTS);
  assert.ok(outcomes.slice(MOST_REQUESTS).every(({ reason }) => reason instanceof Refusal && reason.code === "busy"));
  await assert.rejects(connection.ask(["check", "x".repeat(100_000)], {}), { code: "too-long" });
  await connection.ask(["ping"], {});
});

test("a request whose daemon is killed is rejected, and so is each later one", async (context) => {
  const daemon = await new Daemon(context).start();
  const connection = daemon.connect();
  await connection.ask(["ping"], {});
  daemon.process.kill("SIGSTOP");
  const lost = assert.rejects(connection.ask(["ping"], {}), Disconnected);
  await daemon.end();
  await lost;
  await assert.rejects(connection.ask(["ping"], {}), Disconnected);
});

for (const [name, text] of [
  ["a line without an end", "* ".padEnd(LONGEST_LINE + 2, "x")],
  ["a line over the limit", `* ${"x".repeat(LONGEST_LINE)}\n`],
  ["a reply without a request", "OK\n"],
  ["a row without a request", "* x\n"],
  ["a mark before the first line", "\ufeffERR busy later\n"],
  ["another protocol", "220 mail.example.org ESMTP\r\n"],
]) {
  test(`${name} ends the connection`, async (context) => {
    const { folder } = new Daemon(context);
    const { connection, ended } = await played(context, text, folder);
    const error = await ended();
    assert.ok(error instanceof MalformedLine);
    assert.doesNotMatch(error.message, /ESMTP|OK|xx/);
    await assert.rejects(connection.ask(["ping"], {}), MalformedLine);
  });
}

test("a refusal of the connection is told without a request, and invalid UTF-8 ends it", async (context) => {
  const { folder } = new Daemon(context);
  const busy = await played(context, "ERR busy too many connections\n", folder);
  assert.equal((await busy.ended()).code, "busy");
  const other = new Daemon(context);
  const invalid = await played(context, Buffer.from([0x2a, 0x20, 0xc3, 0x28, 0x0a]), other.folder);
  assert.ok((await invalid.ended()) instanceof TypeError);
});
