// The faults in words, from the state of the connection and from `status`.
import { _, draw, element, format, mark, reason, time, value, visible } from "./elements.js";
import { CAUSES } from "./sentences.js";

/** The path of the socket. */
export const SOCKET = "/run/identityd/identityd.sock";

/** The answer of `status`: a map of the rows, and a list of the faults in manifests. */
export function readStatus(rows) {
  const status = { values: new Map(), manifestFaults: [] };
  for (const [name, shown] of rows.flatMap((row) => [...row.attributes])) {
    if (name === "manifest-fault") status.manifestFaults.push(shown);
    else status.values.set(name, shown);
  }
  return status;
}

/**
 * Lists what an admin has to know, worst first.
 *
 * @returns an array of notices: a kind ("bad", "warning" or "none"), a title, a text of the daemon, and the actions, each
 *     with the label of its button
 */
export function notices({ follower, status, report, isFollowing, isOverdue }) {
  const found = [];
  const add = (kind, title, text, actions = []) => found.push({ kind, title, text, actions });
  const { name, error } = follower.state;
  const values = status?.values ?? new Map();
  const isDamaged = values.get("store") === "damaged";
  if (name === "lost") {
    const isGone = error.name === "Disconnected";
    const title = isGone
      ? _("identityd is not running. The page tries again by itself.")
      : _("The page cannot follow the daemon. It tries again by itself.");
    add("bad", title, `${SOCKET}\n${error.message === "not-found" ? _("There is no socket.") : reason(error)}`);
  }
  if (name === "connecting" && isOverdue) {
    // The check asks systemd, too, so it knows the cause of a daemon that ends again and again.
    const cause = report?.findings?.find(({ result }) => result === "failed");
    const isRunning = cause === undefined || cause.check === "socket";
    const title = isRunning
      ? _("identityd has not answered for some seconds. The page waits for it.")
      : _("identityd is not running. The page tries again by itself.");
    add("bad", title, cause ? `${cause.check}: ${cause.cause}` : SOCKET);
  }
  if (name === "refused" && !isDamaged) {
    const title = _("The daemon refuses to tell its values. The page tries again by itself.");
    add("bad", title, `${error.code}: ${reason(error)}`);
  }
  if (isDamaged) add("bad", _("The store is damaged."), values.get("store-reason"));
  else if (values.has("store-reason")) add("bad", _("Nothing can be changed now."), values.get("store-reason"));
  // Of a damaged store, the items are a symptom.
  if (values.get("master-key") === "unavailable" && !isDamaged) {
    add("bad", _("The items cannot be used, because their key is missing."), values.get("master-key-reason"));
  }
  if (values.has("sealed")) {
    const title = _("The store is sealed. The next start begins a new store.");
    add("warning", title, _("The manual page identityd(8) has the steps before the image is taken."));
  }
  if (values.has("configuration-reason")) {
    add("bad", _("The configuration has a fault. The next start will fail."), values.get("configuration-reason"));
  }
  if (values.has("suspect")) {
    const title = _("This may be a copy of another machine. If it is a copy, renew the device identifier.");
    add("warning", title, since(values.get("suspect")), [
      ["renew", _("It is a copy: renew the device identifier…")],
      ["acknowledge", _("It is the original…")],
    ]);
  }
  if (values.has("machine-change")) {
    const title = _("The identifiers were renewed on another machine.");
    add("warning", title, since(values.get("machine-change")), [["acknowledge", _("The change is intended…")]]);
  }
  const count = Number(values.get("manifest-faults") ?? 0);
  if (count > 0) {
    add("warning", format(_("Faults in manifests: $0"), count), status.manifestFaults.join("\n"));
  }
  if (isFollowing && !follower.isAdmin) {
    const app = visible(follower.whoami?.get("app") ?? "");
    const who = format(_("Limited access: only what concerns $0 is shown."), app);
    add("none", `${who} ${_("Turn on administrative access to see everything.")}`);
  }
  return found;
}

// A cause and a moment.
function since(text) {
  return text.split(" ");
}

/** Draws the notices, only where they differ, so that a screen reader tells each one once. */
export function drawNotices(page) {
  const found = notices(page);
  draw(document.getElementById("notices"), found, () => found.map((notice) => noticeElement(notice, page.act)));
  const { kind, text } = summary(page, found);
  const place = document.getElementById("summary");
  draw(place, [kind, text], () => [mark(kind), ` ${text}`]);
  place.className = `state ${kind}`;
}

/**
 * Tells the worst of the notices and of the last check. Without one of the answers, nothing is said to be in order.
 *
 * @returns the kind and a text
 */
export function summary({ follower, status, report, isChecking, isOverdue }, found) {
  if (follower.state.name === "connecting" && !isOverdue) return { kind: "none", text: _("connecting …") };
  const kinds = new Set(found.map(({ kind }) => kind));
  const grades = { failed: "bad", warning: "warning", info: "good" };
  for (const finding of report?.findings ?? []) kinds.add(grades[finding.result] ?? "warning");
  if (kinds.has("bad")) return { kind: "bad", text: _("needs attention now") };
  if (kinds.has("warning")) return { kind: "warning", text: _("needs attention") };
  if (isChecking) return { kind: "none", text: _("checking …") };
  if (!report || status === null) return { kind: "none", text: _("not known") };
  return { kind: "good", text: _("in order") };
}

function noticeElement({ kind, title, text, actions }, act) {
  const parts = [element("p", {}, mark(kind), " ", title)];
  if (Array.isArray(text)) {
    parts.push(element("p", {}, value(CAUSES[text[0]] ?? text[0]), " – ", time(text[1])));
  } else if (text) {
    for (const line of text.split("\n")) parts.push(element("p", { class: "quiet" }, value(line)));
  }
  const buttons = actions.map(([action, label]) => {
    const attributes = { type: "button", "data-focus": `${action} ${title}`, onclick: () => act(action) };
    return element("button", attributes, label);
  });
  if (buttons.length > 0) parts.push(element("div", { class: "actions" }, ...buttons));
  return element("div", { class: `notice ${kind}` }, ...parts);
}
