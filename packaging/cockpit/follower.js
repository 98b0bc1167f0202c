// Follows the state of the daemon over restarts of the daemon and of its store.
import { Connection, Disconnected } from "./wire.js";
import { _, Refusal } from "./words.js";

/** The shortest and the longest pause before another attempt, in milliseconds. */
export const PAUSES = { first: 500, longest: 8_000 };
/** The number of events before the first snapshot that are asked for. */
export const EARLIER_EVENTS = 200;

/**
 * Keeps a subscription to all events, and passes a snapshot and the events on.
 *
 * It tells, with the functions of an object:
 *
 * - state(state): "connecting", "following", "refused" with a Refusal, or "lost" with an error
 * - begin(): a snapshot begins, and all values so far are void
 * - row(topic, attributes): a value of the snapshot
 * - event(event): an event, in the order of the numbers. Events that led to the snapshot can come after it.
 * - missed(number): events are missing before the next one
 */
export class Follower {
  #open;
  #told;
  #pauses;
  #connection = null;
  #whoami = null;
  // The number and the epoch after which the next events follow; null before the first snapshot.
  #position = null;
  // The epoch in which events were missed; undefined if none were missed.
  #missedIn;
  #pause;
  #timer = null;
  #stopped = false;
  #state = { name: "connecting" };

  /**
   * @param open a function that opens a channel, as an admin if its argument is true
   * @param told an object with the functions above
   * @param pauses the shortest and the longest pause
   */
  constructor(open, told, pauses = PAUSES) {
    this.#open = open;
    this.#told = told;
    this.#pauses = pauses;
    this.#pause = pauses.first;
    this.#connect(false);
  }

  get state() {
    return this.#state;
  }

  /** The attributes of `whoami` on this connection; null while there is none. */
  get whoami() {
    return this.#whoami;
  }

  get isAdmin() {
    return this.#whoami?.get("admin") === "yes";
  }

  /** Sends a request on the present connection; see Connection. */
  ask(words, attributes) {
    return new Promise((done, failed) => this.send(words, attributes, done, failed));
  }

  /** Sends a request on the present connection. The outcome comes before the next event; see Connection. */
  send(words, attributes, done, failed) {
    if (this.#connection === null) return failed(new Disconnected(_("the daemon is not running")));
    this.#connection.send(words, attributes, done, failed);
  }

  /** Ends the connection for good. */
  stop() {
    this.#stopped = true;
    this.#leave(null);
  }

  #tell(name, error) {
    this.#state = { name, error };
    this.#told.state(this.#state);
  }

  // Forgets the connection first, so that its end is not told.
  #leave(error) {
    clearTimeout(this.#timer);
    const connection = this.#connection;
    this.#connection = null;
    this.#whoami = null;
    connection?.close(error ?? undefined);
  }

  #connect(asAdmin) {
    if (this.#stopped) return;
    let connection = null;
    const isCurrent = () => connection !== null && connection === this.#connection;
    const told = {
      event: (event) => isCurrent() && this.#event(event),
      lag: (lag) => isCurrent() && this.#lag(lag),
      ended: (error) => isCurrent() && this.#lost(error),
    };
    connection = new Connection(this.#open(asAdmin), told);
    this.#connection = connection;
    this.#begin(connection, asAdmin);
  }

  #begin(connection, asAdmin) {
    const failed = (error) => connection === this.#connection && this.#failed(error, asAdmin);
    const elevate = () => {
      this.#leave(null);
      this.#connect(true);
    };
    connection.send(["whoami"], {}, (reply) => {
      if (connection !== this.#connection) return;
      // A member of the group of admins needs no more rights, and keeps its own name in the history.
      if (!asAdmin && reply.attributes.get("admin") !== "yes") return elevate();
      this.#whoami = new Map([...reply.attributes, ["app", reply.words[0]]]);
      if (this.#position !== null) this.#subscribe(connection, this.#position, false, failed);
      else this.#askPosition(connection, failed);
    }, (error) => {
      // A damaged store may not tell who is an admin, but `status` still tells an admin more.
      if (!asAdmin && error instanceof Refusal && error.code !== "busy" && connection === this.#connection) elevate();
      else failed(error);
    });
  }

  // Finds the number before the last events. Only admins and monitors are told the last number.
  #askPosition(connection, failed) {
    connection.send(["status"], {}, ({ rows }) => {
      const value = (name) => rows.find((row) => row.attributes.has(name))?.attributes.get(name);
      const last = Number(value("last-event"));
      const since = last - Math.min(Number(value("kept-events")), EARLIER_EVENTS);
      const epoch = value("epoch");
      const position = Number.isSafeInteger(since) && epoch !== undefined ? { since, epoch } : null;
      this.#subscribe(connection, position, true, failed);
    }, failed);
  }

  #subscribe(connection, position, wantsSnapshot, failed) {
    const attributes = { since: position?.since, epoch: position?.epoch, snapshot: wantsSnapshot ? "yes" : undefined };
    const done = (reply) => connection === this.#connection && this.#subscribed(reply, wantsSnapshot);
    connection.send(["subscribe"], attributes, done, (error) => {
      const isPast = error instanceof Refusal && ["gone", "bad-argument"].includes(error.code);
      if (position === null || !isPast || connection !== this.#connection) return failed(error);
      if (!wantsSnapshot) this.#told.missed(undefined);
      this.#position = null;
      this.#subscribe(connection, null, true, failed);
    });
  }

  #subscribed({ rows, words, attributes }, hasSnapshot) {
    this.#position = { since: Number(words[0]), epoch: attributes.get("epoch") };
    // The numbers of another epoch say nothing about those that were missed.
    if (this.#missedIn !== undefined && this.#missedIn !== this.#position.epoch) this.#told.missed(undefined);
    this.#missedIn = undefined;
    if (hasSnapshot) {
      this.#told.begin();
      for (const row of rows) this.#told.row(row.words[0], row.attributes);
    }
    // A daemon that ends at once after each start is asked ever less often.
    this.#timer = setTimeout(() => (this.#pause = this.#pauses.first), this.#pauses.longest);
    this.#tell("following");
  }

  #event(event) {
    if (this.#position === null) return;
    this.#position.since = event.sequence;
    this.#told.event(event);
  }

  // The subscriber was too slow. To read the values anew takes less than to read all that it missed.
  #lag(lag) {
    this.#missedIn = this.#position?.epoch;
    this.#position = null;
    this.#told.missed(Number(lag.attributes.get("missed")));
    this.#leave(null);
    // The page asks for the states of tokens after each snapshot, so it has to learn of this one.
    this.#tell("connecting");
    this.#again();
  }

  // A refusal leaves the connection open, for `status`; one that the daemon closes is left. The values of a daemon that
  // refuses are not known, so a snapshot has to come next.
  #failed(error, asAdmin) {
    if (!(error instanceof Refusal)) return this.#lost(error);
    this.#position = null;
    if (error.code === "busy") this.#leave(null);
    this.#tell("refused", error);
    this.#again(asAdmin);
  }

  #lost(error) {
    this.#leave(null);
    if (error instanceof Refusal) this.#position = null;
    this.#tell(error instanceof Refusal ? "refused" : "lost", error);
    this.#again();
  }

  #again(asAdmin = false) {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      if (this.#connection === null) this.#connect(false);
      else this.#begin(this.#connection, asAdmin);
    }, this.#pause);
    this.#pause = Math.min(this.#pause * 2, this.#pauses.longest);
  }
}
