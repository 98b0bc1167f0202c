// Events as sentences.
import { _ } from "./elements.js";

/** The sentences by topic and name of the event: the text, and the values in place of $0 and so on. */
const SENTENCES = {
  "device created": [_("This device has the identifier $0 ($1)."), "value", "cause"],
  "device changed": [_("This device has the identifier $0 in place of $1 ($2)."), "value", "previous", "cause"],
  "device ended": [_("The identifier $0 of this device has ended ($1)."), "value", "cause"],
  "device suspect": [_("Another machine may have the identifiers of this one ($0)."), "cause"],
  "device acknowledged": [_("This machine is confirmed as the right one.")],
  "device resumed": [_("This machine goes on from a snapshot: the sessions of its apps have other identifiers.")],
  // A device identifier that an app or a vendor has for itself.
  "own created": [_("$0 has the device identifier $1 of its own ($2)."), "owner", "value", "cause"],
  "own changed": [
    _("$0 has the device identifier $1 of its own in place of $2 ($3)."), "owner", "value", "previous", "cause",
  ],
  "own ended": [_("The device identifier $1 of $0 has ended ($2)."), "owner", "value", "cause"],
  "installation created": [_("The installation of $0 has the identifier $1 ($2)."), "app", "value", "cause"],
  "installation changed": [
    _("The installation of $0 has the identifier $1 in place of $2 ($3)."), "app", "value", "previous", "cause",
  ],
  "installation ended": [_("The identifier $1 of the installation of $0 has ended ($2)."), "app", "value", "cause"],
  "vendor created": [_("The vendor $0 has the identifier $1 ($2)."), "vendor", "value", "cause"],
  "vendor changed": [
    _("The vendor $0 has the identifier $1 in place of $2 ($3)."), "vendor", "value", "previous", "cause",
  ],
  "vendor ended": [_("The identifier $1 of the vendor $0 has ended ($2)."), "vendor", "value", "cause"],
  "app installed": [_("$0 of the vendor $1 is installed."), "app", "vendor"],
  "app suspended": [_("The manifest of $0 of the vendor $1 is missing: the app is suspended."), "app", "vendor"],
  "app resumed": [_("The manifest of $0 of the vendor $1 is back."), "app", "vendor"],
  "app replaced": [_("$0 of the vendor $1 has taken the place of $2."), "app", "vendor", "previous"],
  "app uninstalled": [_("$0 of the vendor $1 is uninstalled."), "app", "vendor"],
  "devices added": [_("The device $0 is in the account."), "member"],
  "devices renamed": [_("The device $0 has the name $1."), "value", "name"],
  "devices suspect": [_("Another machine may speak for the device $0."), "value"],
  "devices cleared": [_("No other machine speaks for the device $0."), "value"],
  "devices removed": [_("The device $0 is no longer in the account."), "member"],
  "devices replaced": [_("The device $0 of the account was $1 before."), "value", "previous"],
  "account entered": [_("This device is in the account $0."), "value"],
  "account left": [_("This device is in no account.")],
  "item added": [_("The item $0, $1 of $2 is new."), "service", "account", "group"],
  "item replaced": [_("The item $0, $1 of $2 is replaced."), "service", "account", "group"],
  "item updated": [_("The item $0, $1 of $2 is changed."), "service", "account", "group"],
  "item deleted": [_("The item $0, $1 of $2 is deleted."), "service", "account", "group"],
  "version installed": [_("$0 has its first known version, $1."), "product", "version"],
  "version updated": [_("$0 has changed from version $1 to $2."), "product", "before", "version"],
  "version upgraded": [_("$0 is upgraded from version $1 to $2."), "product", "before", "version"],
  "version downgraded": [_("$0 is downgraded from version $1 to $2."), "product", "before", "version"],
  "token created": [_("$0 has a push token of $1."), "app", "provider"],
  "token replaced": [_("$0 has another push token of $1."), "app", "provider"],
  "token invalidated": [_("The push token that $0 has of $1 is invalid."), "app", "provider"],
  "token deleted": [_("$0 has no push token of $1 any more."), "app", "provider"],
  "token rehomed": [_("The push token that $0 has of $1 belongs to this device now."), "app", "provider"],
  "proof key-created": [_("The key $0 signs proofs of this device from $1."), "key", "signs"],
  "proof key-rotated": [_("The key $0 signs proofs of this device from $1, in place of another one."), "key", "signs"],
  "proof key-locked": [_("The proof key $0 belongs to another machine."), "key"],
  "proof key-lost": [_("The proof key $0 has ended. Servers need the new key set."), "key"],
};

/** The causes of identifiers. */
export const CAUSES = {
  "first-use": _("first use"),
  migrated: _("migration"),
  renewed: _("renewal"),
  restored: _("restored backup"),
  "machine-changed": _("another machine-id"),
  "hardware-changed": _("other hardware"),
  "machine-returned": _("the former machine is back"),
  cloned: _("copy of a machine"),
  uninstalled: _("uninstallation"),
  sealed: _("sealed store"),
};

/** The values that are more than an attribute of the event. */
const VALUES = {
  cause: (get) => CAUSES[get("cause")] ?? get("cause"),
  owner: (get) => get("app") ?? get("vendor"),
  member: (get) => get("name") || get("value"),
  product: (get) => (get("of") === "os" ? _("The system") : get("app")),
  version: (get) => release(get("id"), get("version"), get("build")),
  before: (get) => release(get("previous-id"), get("previous"), get("previous-build")),
};

function release(id, version, build) {
  return version && [id, version, build && `(${build})`].filter(Boolean).join(" ");
}

// The key of an event's sentence: events of one name can tell different things.
function keyOf(topic, name, get) {
  if (topic === "device" && VALUES.owner(get) !== undefined) return `own ${name}`;
  if (topic === "account") return get("value") ? "account entered" : "account left";
  if (topic !== "devices" || name !== "changed") return `${topic} ${name}`;
  return { yes: "devices suspect", no: "devices cleared" }[get("suspect")] ?? "devices renamed";
}

/**
 * Tells an event as a sentence.
 *
 * @returns its text, in which $0 and so on stand for the values, and the values; null for an event that this page does
 *     not know, as from a later daemon
 */
export function sentence({ topic, name, attributes }) {
  const get = (key) => attributes.get(key);
  const key = keyOf(topic, name, get);
  if (!Object.hasOwn(SENTENCES, key)) return null;
  const [text, ...names] = SENTENCES[key];
  const values = names.map((value) => (VALUES[value] ? VALUES[value](get) : get(value)));
  return values.includes(undefined) ? null : { text, values };
}
