// A connection to identityd over a channel of Cockpit: requests, replies and events in their order.
import { _, MalformedLine, parseLine, Refusal, requestLine } from "./words.js";

/** The number of requests that may wait for their replies. */
export const MOST_REQUESTS = 256;
/** The longest line of the daemon, in characters. The longest that it sends holds an item, which is never asked for. */
export const LONGEST_LINE = 1_048_576;
/** The number of rows of a reply. The largest reply lists every item of the store. */
export const MOST_ROWS = 1_000_000;

/** The connection has ended, so the outcome of a request is unknown. */
export class Disconnected extends Error {
  constructor(message) {
    super(message);
    this.name = "Disconnected";
  }
}

const tooLong = (length) => new MalformedLine(length, _("it is too long"));

/**
 * A connection, which ends with its channel.
 *
 * Everything is told in the order of its lines: a reply is handed over before the next line is read, so that no event
 * overtakes the snapshot before it.
 */
export class Connection {
  #channel;
  #told;
  #decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  #encoder = new TextEncoder();
  // The beginning of the next line, in the pieces that have arrived.
  #pieces = [];
  #length = 0;
  #waiting = [];
  #rows = [];
  #end = null;

  /**
   * @param channel a channel of Cockpit, binary and with the payload "stream"
   * @param told an object with the functions event(event), lag(lag) and ended(error)
   */
  constructor(channel, told) {
    this.#channel = channel;
    this.#told = told;
    channel.addEventListener("message", (_event, data) => this.#receive(data));
    channel.addEventListener("close", (_event, options) => {
      this.#finish(new Disconnected(options?.message || options?.problem || _("the daemon closed the connection")));
    });
  }

  /**
   * Sends a request.
   *
   * @returns a promise of the reply: its rows, and the words and attributes of its last line. It is rejected with a
   *     Refusal, or with Disconnected.
   */
  ask(words, attributes) {
    return new Promise((done, failed) => this.send(words, attributes, done, failed));
  }

  /** Sends a request. One of the functions gets the outcome before the next line is read. */
  send(words, attributes, done, failed) {
    if (this.#end === null && this.#channel.valid === false) this.#finish(new Disconnected(_("the channel is closed")));
    if (this.#end !== null) return failed(this.#end);
    if (this.#waiting.length >= MOST_REQUESTS) {
      return failed(new Refusal("busy", _("too many requests wait for replies")));
    }
    let line;
    try {
      line = requestLine(words, attributes);
    } catch (error) {
      return failed(error);
    }
    this.#waiting.push({ done, failed });
    this.#channel.send(this.#encoder.encode(line));
  }

  /** Ends the connection. Requests that wait are rejected. */
  close(error = new Disconnected(_("the connection was closed"))) {
    if (this.#end !== null) return;
    this.#finish(error);
    this.#channel.close();
  }

  #finish(error) {
    if (this.#end !== null) return;
    this.#end = error;
    this.#pieces = [];
    this.#rows = [];
    for (const { failed } of this.#waiting.splice(0)) failed(error);
    this.#told.ended(error);
  }

  #receive(data) {
    if (this.#end !== null) return;
    try {
      let text = this.#decoder.decode(data, { stream: true });
      for (;;) {
        const feed = text.indexOf("\n");
        if (feed < 0) break;
        this.#pieces.push(text.slice(0, feed));
        const line = this.#pieces.join("");
        this.#pieces = [];
        this.#length = 0;
        text = text.slice(feed + 1);
        if (line.length > LONGEST_LINE) throw tooLong(line.length);
        this.#read(line);
        if (this.#end !== null) return;
      }
      if (text !== "") this.#pieces.push(text);
      this.#length += text.length;
      if (this.#length > LONGEST_LINE) throw tooLong(this.#length);
    } catch (error) {
      this.close(error);
    }
  }

  #read(text) {
    const line = parseLine(text);
    switch (line.kind) {
      case "event":
        return this.#told.event(line);
      case "lag":
        return this.#told.lag(line);
      case "row":
        if (this.#waiting.length === 0) throw new MalformedLine(text.length, _("the row belongs to no request"));
        if (this.#rows.length >= MOST_ROWS) throw new MalformedLine(text.length, _("the reply has too many rows"));
        this.#rows.push(line);
        return;
      default:
        return this.#answer(line, text.length);
    }
  }

  #answer({ kind, code, text, words, attributes }, length) {
    const rows = this.#rows;
    this.#rows = [];
    const waiting = this.#waiting.shift();
    // The daemon tells a refusal of the whole connection without a request.
    if (waiting === undefined) {
      const unasked = () => new MalformedLine(length, _("the reply belongs to no request"));
      this.close(kind === "err" ? new Refusal(code, text) : unasked());
    } else if (kind === "err") {
      waiting.failed(new Refusal(code, text));
    } else {
      waiting.done({ rows, words, attributes });
    }
  }
}
