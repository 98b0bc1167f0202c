// The table of apps, and the answer to "What was this UUID?".
import { refusal } from "./dialog.js";
import { _, draw, element, format, table, turnOff, uuid, value, visible } from "./elements.js";

/** The number of apps on a page. */
export const PAGE = 50;
/** A token that was not confirmed for so long is stale, in milliseconds. */
const STALE = 30 * 24 * 3_600_000;

/** The choices of the user: the filter and the page, from 0. */
export const choice = { text: "", onlyTokens: false, page: 0 };

// The installed apps, by name.
let sorted = [];
let sortedRevision = -1;

/** The installed apps that the filter lets pass, by name. */
function chosenApps(model) {
  if (sortedRevision !== model.revision) {
    sorted = model.installedApps().sort((one, other) => (one.name < other.name ? -1 : 1));
    sortedRevision = model.revision;
  }
  const text = choice.text.trim().toLowerCase();
  if (text === "" && !choice.onlyTokens) return sorted;
  return sorted.filter((app) => {
    if (choice.onlyTokens && ![...app.tokens.values()].some(needsAttention)) return false;
    return [app.name, app.vendor, app.installation?.value ?? ""].some((part) => part.toLowerCase().includes(text));
  });
}

/** Whether a token is invalid or stale. */
export function needsAttention(token) {
  return token.isInvalid || Date.now() - Date.parse(token.confirmed ?? "") > STALE;
}

/** Draws the present page of the table. */
export function drawApps(page, openApp) {
  const { model, wasFollowing } = page;
  const apps = chosenApps(model);
  const pages = Math.max(1, Math.ceil(apps.length / PAGE));
  choice.page = Math.min(choice.page, pages - 1);
  const shown = apps.slice(choice.page * PAGE, (choice.page + 1) * PAGE);
  const isFiltered = choice.text.trim() !== "" || choice.onlyTokens;
  document.getElementById("apps-count").textContent = wasFollowing ? String(sorted.length) : "";
  const key = shown.map((app) => [app, [...app.tokens], model.itemCount(app.name)]);
  const { isAdmin } = page.follower;
  draw(document.getElementById("apps-table"), [key, wasFollowing, isFiltered, isAdmin], () => {
    if (shown.length > 0) return appTable(model, shown, openApp);
    const none = isAdmin ? _("No app is installed yet.") : _("None of the installed apps concerns you.");
    const text = isFiltered ? _("No app matches the filter.") : none;
    return element("p", { class: "quiet" }, wasFollowing ? text : _("not known"));
  });
  document.getElementById("apps-pages").hidden = pages === 1;
  document.getElementById("apps-page").textContent = format(_("Page $0 of $1"), choice.page + 1, pages);
  turnOff(document.querySelector('[data-action="previous"]'), choice.page === 0);
  turnOff(document.querySelector('[data-action="next"]'), choice.page === pages - 1);
}

function appTable(model, apps, openApp) {
  const heads = [_("App"), _("Vendor"), _("Installation"), _("Version"), _("Tokens"), _("Items")];
  const rows = apps.map((app) => {
    const attributes = { type: "button", class: "link", "data-focus": `app ${app.name}` };
    return [
      element("button", { ...attributes, onclick: () => openApp(app.name) }, value(app.name)),
      value(app.vendor),
      app.installation ? uuid(app.installation.value) : "–",
      value(app.version?.version ?? "–"),
      tokenList(app),
      String(model.itemCount(app.name)),
    ];
  });
  return table(_("Apps"), heads, rows);
}

function tokenList(app) {
  if (app.tokens.size === 0) return "–";
  const parts = [...app.tokens].map(([provider, token]) => {
    const state = token.isInvalid ? _("invalid") : needsAttention(token) ? _("stale") : "";
    const sign = state === "" ? "" : ` ✗ ${state}`;
    return element("span", { class: state === "" ? undefined : "state bad" }, value(provider), `${sign} `);
  });
  return element("span", {}, ...parts);
}

/** Answers what an identifier is or was. */
export async function resolve(page, text) {
  const place = document.getElementById("resolve-answer");
  place.replaceChildren();
  if (text.trim() === "") return;
  try {
    const { words, attributes } = await page.follower.ask(["resolve", text.trim()]);
    const owner = attributes.get("app") ?? attributes.get("vendor");
    const of = owner === undefined ? words[0] : `${words[0]} – ${visible(owner)}`;
    const parts = [element("bdi", {}, of), ": "];
    if (attributes.get("current") === "yes") parts.push(_("in force now"));
    else if (attributes.has("now")) parts.push(_("replaced. Now in force:"), " ", uuid(attributes.get("now")));
    else parts.push(_("no longer in force"));
    place.replaceChildren(...parts);
  } catch (error) {
    place.textContent = error.code === "not-found" ? _("No such identifier was given out here.") : refusal(error);
  }
}
