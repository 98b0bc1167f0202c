// The values that the daemon knows, from a snapshot and the events after it.

/** The number of events that are kept for the list of events. */
export const KEPT_EVENTS = 200;

const VALUES = ["device", "installation", "vendor"];

/**
 * The values of a snapshot, brought up to date by events.
 *
 * Each step can be taken twice: a snapshot already contains the outcome of the events that led to it, and these events
 * may come after it.
 */
export class Model {
  // The number of the last event in the list; 0 before the first one, and where a gap is of unknown length.
  #last = 0;

  constructor() {
    /** The latest events, oldest first, and the gaps among them. Events survive a new snapshot. */
    this.events = [];
    this.begin();
  }

  /** Forgets all values, before the first row of a snapshot. */
  begin() {
    /** The device identifier that apps share: its value and cause; null if there is none. */
    this.device = null;
    this.account = "";
    /** The names of the account's devices by their identifiers; undefined for a name that is not known. */
    this.devices = new Map();
    /** The installed apps by their names, and uninstalled ones that still have a device identifier of their own. */
    this.apps = new Map();
    /** The vendors by their names: each with its identifier and, if it has one of its own, its device identifier. */
    this.vendors = new Map();
    /** The items by access groups, each a map of items by key. */
    this.items = new Map();
    this.system = null;
    this.revision = (this.revision ?? 0) + 1;
  }

  /** Forgets all values and events, of a daemon that refuses to tell them. It tells the latest events again later. */
  forget() {
    this.events = [];
    this.#last = 0;
    this.begin();
  }

  /** Takes a row of a snapshot. */
  row(topic, attributes) {
    this.revision += 1;
    this.#set(topic, attributes);
  }

  /** Takes an event. */
  event(event) {
    this.revision += 1;
    if (event.sequence > this.#last) this.#add(event);
    const { topic, name, attributes } = event;
    if (["ended", "uninstalled", "removed", "deleted"].includes(name)) return this.#remove(topic, attributes);
    if (topic === "devices" && name === "replaced") this.devices.delete(attributes.get("previous"));
    if (topic === "app" && name === "replaced") this.#replace(attributes.get("previous"), attributes.get("app"));
    this.#set(topic, attributes, name);
  }

  // The app has all that the other one had: no other events tell that. A device identifier that it had before stays.
  #replace(previous, name) {
    const before = this.apps.get(previous);
    if (before !== undefined) {
      this.apps.delete(previous);
      this.apps.set(name, { ...before, name, device: this.apps.get(name)?.device ?? before.device });
    }
    const items = this.items.get(previous);
    if (items === undefined) return;
    this.items.delete(previous);
    this.items.set(name, new Map([...(this.items.get(name) ?? []), ...items]));
  }

  /** Notes that events are missing; the number is undefined if it is not known. Numbers may then begin anew. */
  missed(number) {
    this.revision += 1;
    if (number === undefined) this.#last = 0;
    this.#list({ missed: number });
  }

  // Events that were missed in a lag are told later if they are among the latest ones.
  #add(event) {
    const { missed } = this.events.at(-1) ?? {};
    if (missed !== undefined) {
      this.events.pop();
      const left = Math.min(missed, event.sequence - this.#last - 1);
      if (left > 0) this.#list({ missed: left });
    }
    this.#last = event.sequence;
    this.#list(event);
  }

  #list(entry) {
    this.events.push(entry);
    if (this.events.length > KEPT_EVENTS) this.events.shift();
  }

  /** Takes a row of `token list`, which tells what a snapshot does not: the state of the token. */
  tokenState(attributes) {
    const token = this.apps.get(attributes.get("app"))?.tokens.get(attributes.get("provider"));
    if (token === undefined) return;
    this.revision += 1;
    token.isInvalid = attributes.get("state") === "invalid";
    token.confirmed = attributes.get("confirmed");
  }

  /** Returns the installed apps. */
  installedApps() {
    return [...this.apps.values()].filter(({ isInstalled }) => isInstalled);
  }

  /** Returns the number of items in a group. */
  itemCount(group) {
    return this.items.get(group)?.size ?? 0;
  }

  // An identifier or a version can be told before its app.
  #app(name) {
    let app = this.apps.get(name);
    if (app === undefined) {
      const identifiers = { installation: null, device: null };
      app = { name, vendor: "", isInstalled: false, ...identifiers, version: null, tokens: new Map() };
      this.apps.set(name, app);
    }
    return app;
  }

  // The object that has an identifier: this device, an app or a vendor.
  #place(topic, attributes, makes) {
    const [app, vendor] = [attributes.get("app"), attributes.get("vendor")];
    if (app !== undefined) return makes ? this.#app(app) : this.apps.get(app);
    if (vendor === undefined) return topic === "device" ? this : undefined;
    if (!this.vendors.has(vendor) && makes) this.vendors.set(vendor, { vendor: null, device: null });
    return this.vendors.get(vendor);
  }

  #set(topic, attributes, event) {
    const get = (name) => attributes.get(name);
    if (VALUES.includes(topic)) {
      // Only sessions have other identifiers.
      if (event === "resumed") return;
      const place = this.#place(topic, attributes, true);
      const known = { value: get("value"), cause: get("cause"), isSuspect: event === "suspect" };
      if (event === "suspect" && place?.[topic]) known.cause = place[topic].cause;
      if (place !== undefined) place[topic] = known;
      return;
    }
    switch (topic) {
      case "app":
        Object.assign(this.#app(get("app")), { vendor: get("vendor"), isInstalled: true });
        break;
      case "devices":
        this.devices.set(get("value"), get("name") ?? this.devices.get(get("value")));
        break;
      case "account":
        this.account = get("value");
        break;
      case "item":
        if (!this.items.has(get("group"))) this.items.set(get("group"), new Map());
        this.items.get(get("group")).set(itemKey(attributes), { service: get("service"), account: get("account") });
        break;
      case "version": {
        const version = { version: get("version"), build: get("build") };
        if (get("of") === "os") this.system = { ...version, id: get("id") };
        else this.#app(get("app")).version = version;
        break;
      }
      case "token":
        this.#setToken(attributes, event);
        break;
    }
  }

  // A snapshot does not tell which tokens are invalid: `token list` does.
  #setToken(attributes, event) {
    const { tokens } = this.#app(attributes.get("app"));
    const provider = attributes.get("provider");
    const fingerprint = attributes.get("fingerprint");
    const before = tokens.get(provider);
    const isInvalid =
      event === "invalidated" || (event === "rehomed" && before?.fingerprint === fingerprint && before.isInvalid);
    tokens.set(provider, { device: attributes.get("device"), fingerprint, isInvalid });
  }

  #remove(topic, attributes) {
    const app = attributes.get("app");
    if (VALUES.includes(topic)) {
      const place = this.#place(topic, attributes, false);
      if (place !== undefined) place[topic] = null;
      if (app !== undefined && topic === "device" && place?.isInstalled === false) this.apps.delete(app);
      const vendor = attributes.get("vendor");
      if (app === undefined && place?.vendor === null && place?.device === null) this.vendors.delete(vendor);
      return;
    }
    switch (topic) {
      case "app": {
        // The device identifier of an app lasts longer than its installation.
        const device = this.apps.get(app)?.device ?? null;
        this.apps.delete(app);
        if (device !== null) this.#app(app).device = device;
        break;
      }
      case "devices":
        this.devices.delete(attributes.get("value"));
        break;
      case "token":
        this.apps.get(app)?.tokens.delete(attributes.get("provider"));
        break;
      case "item": {
        const group = this.items.get(attributes.get("group"));
        group?.delete(itemKey(attributes));
        if (group?.size === 0) this.items.delete(attributes.get("group"));
        break;
      }
    }
  }
}

function itemKey(attributes) {
  return JSON.stringify([attributes.get("service"), attributes.get("account")]);
}
