// A real daemon, and channels to it with the interface of Cockpit's.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Connection } from "../../packaging/cockpit/wire.js";

export const root = fileURLToPath(new URL("../..", import.meta.url));
const programs = process.env.IDENTITYD_RELEASE_BIN ?? join(root, ".build/debug");
export const isRoot = process.getuid() === 0;

/** Waits until a condition holds. */
export async function until(condition, what) {
  const end = Date.now() + 20_000;
  while (!condition()) {
    if (Date.now() > end) throw new Error(`this never happened: ${what}`);
    await new Promise((done) => setTimeout(done, 5));
  }
}

/** A daemon with its own folder, which ends with the test. */
export class Daemon {
  constructor(test) {
    this.folder = mkdtempSync(join(tmpdir(), "identityd-"));
    chmodSync(this.folder, 0o755);
    this.socket = join(this.folder, "socket");
    this.state = join(this.folder, "state");
    test.after(async () => {
      await this.end();
      rmSync(this.folder, { recursive: true });
    });
  }

  async start(configuration = "") {
    const file = join(this.folder, "identityd.conf");
    writeFileSync(file, configuration);
    const options = ["--state-directory", this.state, "--socket", this.socket, "--config", file];
    this.process = spawn(join(programs, "identityd"), options, { stdio: "ignore" });
    for (let tries = 0; ; tries += 1) {
      if (this.process.exitCode !== null || tries > 1_000) throw new Error("the daemon did not start");
      const socket = net.connect(this.socket);
      if (await once(socket, "connect").catch(() => null)) {
        socket.destroy();
        return this;
      }
      await new Promise((done) => setTimeout(done, 10));
    }
  }

  async end(signal = "SIGKILL") {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, "exit");
    this.process.kill(signal);
    await ended;
  }

  /** Opens a connection, and collects its events. */
  connect(options) {
    const events = [];
    const told = { event: (event) => events.push(event), lag: (lag) => events.push(lag), ended: () => {} };
    const connection = new Connection(new Channel(this.socket, options), told);
    return Object.assign(connection, { events });
  }
}

/**
 * A channel of Cockpit's interface to a Unix socket.
 *
 * With `split`, each byte is a message of its own. With `gather`, all that arrives before this text, and with it, is
 * one message. With `user`, a process of that user connects. `made` gets the channel.
 */
export class Channel {
  valid = true;
  #listeners = { message: [], close: [] };
  #gathered = Buffer.alloc(0);

  constructor(path, { split = false, gather, user, made } = {}) {
    made?.(this);
    this.split = split;
    this.gather = gather;
    if (user === undefined) {
      this.input = this.output = net.connect(path);
    } else {
      const process = spawn("nc", ["-U", path], { uid: user, gid: user, stdio: ["pipe", "pipe", "ignore"] });
      [this.output, this.input] = [process.stdin, process.stdout];
    }
    this.input.on("data", (data) => this.#pass(data));
    this.input.on("error", (error) => this.#end({ problem: "not-found", message: error.message }));
    this.output.on("error", () => {});
    this.input.on("end", () => this.#end({}));
  }

  addEventListener(type, listener) {
    this.#listeners[type].push(listener);
  }

  send(data) {
    if (!this.valid) throw new Error("the channel is closed");
    this.output.write(data);
  }

  close() {
    this.output.end();
    this.input.destroy();
    this.#end({});
  }

  #pass(data) {
    if (this.split) {
      for (const byte of data) this.#tell("message", Uint8Array.of(byte));
    } else if (this.gather !== undefined) {
      this.#gathered = Buffer.concat([this.#gathered, data]);
      if (!this.#gathered.includes(this.gather)) return;
      this.gather = undefined;
      this.#tell("message", new Uint8Array(this.#gathered));
    } else {
      this.#tell("message", new Uint8Array(data));
    }
  }

  #end(options) {
    if (!this.valid) return;
    this.valid = false;
    this.#tell("close", options);
  }

  #tell(type, data) {
    for (const listener of this.#listeners[type]) listener({ type }, data);
  }
}
