// The dialog of one app.
import { needsAttention } from "./apps.js";
import { historyTable, renew } from "./device.js";
import { openDialog, openWithAnswer, refusal, rest } from "./dialog.js";
import { _, element, format, table, terms, time, uuid, value } from "./elements.js";
import { menu } from "./menu.js";
import { learn } from "./users.js";

/** The number of items that are shown. */
const SHOWN_ITEMS = 200;

/** Shows all about an app. */
export async function openApp(page, name) {
  const { follower, model } = page;
  const app = model.apps.get(name);
  if (app === undefined) return;
  const outcome = (promise) => promise.then((reply) => reply.rows, (error) => error);
  const [history, versions, list] = await Promise.all([
    outcome(follower.ask(["history", "installation"], { app: name })),
    outcome(follower.ask(["version", "history"], { app: name })),
    outcome(follower.ask(["app", "list"])),
  ]);
  if (Array.isArray(history)) await learn(history);
  const entry = Array.isArray(list) ? list.find((row) => row.words[0] === name) : undefined;
  const hasManifest = entry?.attributes.get("manifest") === "yes";
  const suspended = entry?.attributes.get("suspended");
  const vendor = model.vendors.get(app.vendor);
  const facts = [
    [_("Vendor"), value(app.vendor)],
    [_("Installation"), app.installation ? uuid(app.installation.value) : _("none yet")],
    [_("Vendor's identifier"), vendor?.vendor ? uuid(vendor.vendor.value) : _("none yet")],
  ];
  const own = app.device ?? vendor?.device;
  if (own) facts.push([_("Own device identifier"), uuid(own.value)]);
  if (entry !== undefined) {
    facts.push([_("Installed"), time(entry.attributes.get("installed"))]);
    facts.push([_("By a manifest"), hasManifest ? _("yes") : _("no")]);
    if (suspended !== undefined) facts.push([_("Suspended, without its manifest"), time(suspended)]);
    facts.push(...manifestFacts(entry.attributes));
  }
  const content = [
    changes(page, app, !hasManifest || suspended !== undefined),
    element("dl", {}, ...terms(facts)),
    ...part(_("Why the installation identifier changed"), history, historyTable),
    ...part(_("Versions"), versions, versionTable),
    ...tokens(page, app),
    ...items(model, name),
  ];
  openDialog(name, content.filter((node) => node !== null));
  document.getElementById("dialog-title").replaceChildren(value(name));
}

// Returns the terms that the manifest sets, as only an admin is told.
function manifestFacts(attributes) {
  const names = [
    [_("Unit"), "unit"],
    [_("Container"), "container"],
    [_("Access groups"), "groups"],
    [_("Rights"), "rights"],
  ];
  const told = names.filter(([, name]) => attributes.has(name));
  return told.map(([term, name]) => [term, value(attributes.get(name).replaceAll(",", ", "))]);
}

// A part of the dialog. An app that lacks such values is no fault.
function part(title, rows, build) {
  if (rows instanceof Error && rows.code === "not-found") return [];
  const shown = rows instanceof Error ? element("p", { class: "error" }, refusal(rows)) : build(rows);
  return Array.isArray(rows) && rows.length === 0 ? [] : [element("h3", {}, title), shown];
}

function versionTable(rows) {
  const cells = [...rows].reverse().slice(0, 50).map(({ words, attributes }) => {
    const build = attributes.get("build");
    const version = build ? `${words[0]} (${build})` : words[0];
    return [value(version), time(attributes.get("installed")), time(attributes.get("last"))];
  });
  const shown = table(_("Versions"), [_("Version"), _("First"), _("Last")], cells);
  return element("div", {}, shown, ...rest(rows.length, cells.length));
}

function tokens(page, app) {
  if (app.tokens.size === 0) return [];
  const heads = [_("Provider"), _("State"), _("Confirmed"), _("Fingerprint"), _("Action")];
  const cells = [...app.tokens].map(([provider, token]) => {
    const state = token.isInvalid ? _("invalid") : needsAttention(token) ? _("stale") : _("valid");
    const name = format(_("Mark invalid: $0"), provider);
    const attributes = { type: "button", "aria-label": name, onclick: () => invalidate(page, app.name, provider) };
    const isPossible = page.follower.isAdmin && !token.isInvalid;
    const action = isPossible ? element("button", attributes, _("Mark invalid…")) : "–";
    const confirmed = token.confirmed ? time(token.confirmed) : "–";
    return [value(provider), state, confirmed, value(token.fingerprint, "uuid"), action];
  });
  return [element("h3", {}, _("Push tokens")), table(_("Push tokens"), heads, cells)];
}

function items(model, group) {
  const all = [...(model.items.get(group)?.values() ?? [])];
  if (all.length === 0) return [];
  const cells = all.slice(0, SHOWN_ITEMS).map(({ service, account }) => [value(service), value(account)]);
  const parts = [table(_("Items"), [_("Service"), _("Account")], cells)];
  parts.push(...rest(all.length, cells.length));
  return [element("h3", {}, format(_("Items: $0"), all.length)), ...parts];
}

function changes(page, app, isForgettable) {
  if (!page.follower.isAdmin) return null;
  const button = (label, run) => element("button", { type: "button", class: "danger", onclick: run }, label);
  const buttons = [
    button(_("Renew the installation…"), () => renew(page, "installation", { app: app.name })),
    button(_("Renew the vendor…"), () => renew(page, "vendor", { app: app.name })),
  ];
  if (isForgettable) buttons.push(button(_("Forget…"), () => forget(page, app)));
  return menu(_("More actions"), "app", buttons);
}

// The token itself is asked for when the dialog opens, and goes from the list into the request, never into an element.
// A token that the app stores while the dialog is open stays valid.
function invalidate(page, name, provider) {
  const ask = () => page.follower.ask(["token", "list"], { app: name });
  return openWithAnswer(_("Mark a push token as invalid"), ask, ({ rows }) => {
    const token = rows.find(({ attributes }) => attributes.get("provider") === provider)?.words[0];
    if (token === undefined) throw new Error(_("The token is gone."));
    const run = async () => {
      const { words } = await page.follower.ask(["token", "invalidate", provider, token], { app: name });
      if (words[0] === "unchanged") throw new Error(_("The app has another token by now."));
    };
    const text = _("Senders no longer use the token. The app can store a new one at any time.");
    const facts = terms([[_("App"), value(name)], [_("Provider"), value(provider)]]);
    const content = [element("dl", {}, ...facts), element("p", {}, text)];
    return { content, action: { label: _("Mark invalid"), destroys: true, done: _("The token is marked."), run } };
  });
}

function forget(page, app) {
  const facts = [
    [_("App"), value(app.name)],
    [_("Installation"), app.installation ? uuid(app.installation.value) : _("none yet")],
    [_("Push tokens"), String(app.tokens.size)],
    [_("Items that stay"), String(page.model.itemCount(app.name))],
  ];
  const text = _("The app is uninstalled: its installation identifier, versions and push tokens end.");
  const run = () => page.follower.ask(["app", "forget", app.name]);
  const action = { label: _("Forget"), word: "forget", destroys: true, done: _("The app is uninstalled."), run };
  openDialog(_("Forget an app"), [element("p", {}, text), element("dl", {}, ...terms(facts))], action);
}
