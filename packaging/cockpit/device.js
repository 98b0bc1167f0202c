// The part about this device, and its dialogs.
import { openDialog, openWithAnswer, previewTable, rest, scrolled } from "./dialog.js";
import { _, draw, element, format, table, terms, time, turnOff, uuid, value } from "./elements.js";
import { CAUSES } from "./sentences.js";
import { learn, user } from "./users.js";

/** The words of `status` for the origin of the identifier, and for the place of the key. */
const WORDS = {
  machine: _("from the machine-id"),
  random: _("random"),
  migrated: _("from an earlier system"),
  restored: _("from a backup"),
  file: _("in a file"),
  credential: _("in a credential of systemd"),
  unavailable: _("not available"),
};

/** Draws the values, and turns the buttons on or off. */
export function drawDevice(page) {
  const { model, follower, status, isFollowing } = page;
  const values = status?.values ?? new Map();
  // A large store is checked for a moment after each start, and changes wait.
  const isWritable = ["ok", "checking"].includes(values.get("store"));
  const canChange = isFollowing && follower.isAdmin && isWritable && !values.has("sealed");
  const shown = { device: model.device, account: model.account, system: model.system };
  const chosen = ["device-origin", "master-key", "version", "started"].map((name) => values.get(name));
  draw(document.getElementById("device-values"), [isFollowing, page.wasFollowing, shown, chosen], () => {
    const unknown = () => element("span", { class: "quiet" }, _("not known"));
    const none = () => (page.wasFollowing ? element("span", { class: "quiet" }, _("none yet")) : unknown());
    const system = model.system && `${model.system.id ?? ""} ${model.system.version ?? ""}`.trim();
    const [origin, key] = [values.get("device-origin"), values.get("master-key")];
    const list = [
      [_("Identifier"), model.device ? uuid(model.device.value) : none()],
      [_("Origin"), origin === undefined ? unknown() : origin === "none" ? none() : value(WORDS[origin] ?? origin)],
      [_("Account"), model.account ? value(model.account) : none()],
      [_("System"), system ? value(system) : none()],
      [_("Key of the items"), key === undefined ? unknown() : value(WORDS[key] ?? key)],
    ];
    if (values.has("version")) list.push(["identityd", value(values.get("version"))]);
    if (values.has("started")) list.push([_("Running since"), time(values.get("started"))]);
    return terms(list);
  });
  const off = {
    history: !isFollowing || model.device === null,
    devices: !isFollowing || model.devices.size === 0,
    invite: !canChange,
    join: !canChange,
    create: !canChange,
    renew: !canChange,
    seal: !canChange,
  };
  for (const [action, isOff] of Object.entries(off)) {
    turnOff(document.querySelector(`#device [data-action="${action}"]`), isOff);
  }
  // A device without an account can join one, and a device of an account can invite another one.
  document.querySelector('[data-action="invite"]').hidden = !model.account;
  for (const action of ["join", "create"]) {
    document.querySelector(`[data-action="${action}"]`).hidden = Boolean(model.account);
  }
}

/** A table of past identifiers, newest first. */
export function historyTable(rows) {
  const heads = [_("Identifier"), _("From"), _("Until"), _("Why"), _("By")];
  const shown = rows.toReversed?.() ?? [...rows].reverse();
  const cells = shown.slice(0, 200).map(({ words, attributes }) => {
    const get = (name) => attributes.get(name);
    const cause = (name) => CAUSES[get(name)] ?? get(name);
    const why = get("ended") ? `${cause("cause")} → ${cause("ended")}` : cause("cause");
    const until = get("until") ? time(get("until")) : _("now");
    const by = get("by") === undefined ? _("the daemon") : user(get("by"));
    return [uuid(words[0]), time(get("from")), until, value(why), by];
  });
  return scrolled(_("History"), table(_("History"), heads, cells), ...rest(rows.length, cells.length));
}

/** Shows which identifiers this device had, and why they changed. */
export function showHistory(page) {
  const ask = async () => {
    const answer = await page.follower.ask(["history", "device"]);
    await learn(answer.rows);
    return answer;
  };
  return openWithAnswer(_("History of the device identifier"), ask, ({ rows }) => ({ content: [historyTable(rows)] }));
}

// Makes a change after which the status differs: it may end a suspicion or a warning.
async function change(page, words, attributes) {
  await page.follower.ask(words, attributes);
  await page.askStatus();
}

/** Renews an identifier, after a dry run. */
export function renew(page, level, names) {
  const ask = () => page.follower.ask(["renew", level], { ...names, "dry-run": "yes" });
  const title = { device: _("Renew the device identifier") }[level] ?? format(_("Renew: $0"), level);
  return openWithAnswer(title, ask, ({ rows }) => {
    const content = [element("p", {}, _("These identifiers are replaced by random ones:"))];
    if (level === "device" && page.status?.values.has("suspect")) {
      const text = _("The original keeps its identifier. Here, push tokens become invalid, and some items are locked.");
      content.unshift(element("p", {}, text));
    }
    content.push(previewTable(_("Identifiers to replace"), rows));
    if (rows.length === 0) content.push(element("p", {}, _("There is none yet, so one is made.")));
    const run = () => change(page, ["renew", level], names);
    const done = _("The identifier is renewed.");
    return { content, action: { label: _("Renew"), word: "renew", destroys: true, done, run } };
  });
}

/** Seals the store for a golden image, after a dry run. */
export function seal(page) {
  const ask = () => page.follower.ask(["seal"], { "dry-run": "yes" });
  return openWithAnswer(_("Seal the store for a golden image"), ask, ({ rows }) => {
    const number = (name) => page.status?.values.get(name) ?? "?";
    const text = _("Lost as well: $0 items, $1 push tokens, and all versions.");
    const lost = format(text, number("items"), number("tokens"));
    const content = [element("p", {}, lost, " ", _("Nothing is made before the next start of the daemon."))];
    content.push(previewTable(_("Identifiers to end"), rows));
    const run = () => change(page, ["seal"]);
    const done = _("The store is sealed.");
    return { content, action: { label: _("Seal"), word: "seal", destroys: true, done, run } };
  });
}

/** Says that the machine is the right one, after a dry run: what an earlier renewal left to the original is deleted. */
export function acknowledge(page) {
  const ask = () => page.follower.ask(["machine", "acknowledge"], { "dry-run": "yes" });
  const isSuspect = page.status?.values.has("suspect");
  const title = isSuspect ? _("Keep the identifiers") : _("Keep the new identifiers");
  return openWithAnswer(title, ask, ({ rows }) => {
    const text = isSuspect
      ? _("The identifiers stay as they are. Confirm this on the original only: a copy needs an identifier of its own.")
      : _("The new identifiers stay. If the change was an accident, restore the former machine-id instead.");
    const content = [element("p", {}, text)];
    if (rows.length > 0) {
      const lost = _("These push tokens and items are deleted. Until then, they come back with the former machine:");
      const cells = rows.slice(0, 200).map(({ words, attributes }) => {
        const names = ["provider", "group", "service", "account"].map((name) => attributes.get(name));
        const kind = { token: _("Push token"), item: _("Item") }[words[0]] ?? value(words[0]);
        return [kind, value(attributes.get("app")), value(names.filter(Boolean).join(", "))];
      });
      const shown = table(_("Deleted"), [_("Kind"), _("App"), _("Name")], cells);
      content.push(element("p", {}, lost), scrolled(_("Deleted"), shown, ...rest(rows.length, cells.length)));
    }
    const run = () => change(page, ["machine", "acknowledge"]);
    const label = isSuspect ? _("This is the original") : _("The change is intended");
    return { content, action: { label, destroys: rows.length > 0, done: _("The warning has ended."), run } };
  });
}

/** Lists the devices of the account. */
export function showDevices(page) {
  const ask = () => page.follower.ask(["devices"]);
  return openWithAnswer(_("Devices of the account"), ask, ({ rows }) => {
    const heads = [_("Identifier"), _("Name"), _("Seen"), _("Added"), _("Action")];
    const cells = rows.slice(0, 500).map((row) => {
      const get = (name) => row.attributes.get(name);
      const isSelf = get("self") === "yes";
      const seen = isSelf ? _("this device") : get("seen") ? time(get("seen")) : _("never");
      const label = isSelf ? _("Rename…") : _("Forget…");
      const change = () => (isSelf ? renameDevice(page, get("name")) : forgetDevice(page, row));
      const name = `${label} ${get("name") ?? row.words[0]}`;
      const button = element("button", { type: "button", "aria-label": name, onclick: change }, label);
      const action = page.follower.isAdmin ? button : "–";
      return [uuid(row.words[0]), value(get("name") ?? "–"), seen, time(get("added")), action];
    });
    const content = [table(_("Devices"), heads, cells)];
    content.push(...rest(rows.length, cells.length));
    return { content };
  });
}

function renameDevice(page, name) {
  const input = element("input", { id: "device-name", type: "text", maxlength: "255", autocomplete: "off" });
  input.value = name ?? "";
  const run = () => page.follower.ask(["devices", "name", input.value]);
  const label = element("label", { for: "device-name" }, _("Name of this device"));
  const action = { label: _("Rename"), done: _("The device is renamed."), run };
  openDialog(_("Rename this device"), [element("p", {}, label), input], action);
}

function forgetDevice(page, row) {
  const content = [element("p", {}, _("This device leaves the list:")), element("p", {}, uuid(row.words[0]))];
  content.push(element("p", {}, value(row.attributes.get("name") ?? "")));
  const run = () => page.follower.ask(["devices", "forget", row.words[0]]);
  const action = { label: _("Forget"), destroys: true, done: _("The device is no longer listed."), run };
  openDialog(_("Forget a device"), content, action);
}
