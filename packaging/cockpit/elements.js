// Parts of the page. Everything from the daemon becomes text, never markup.
import { MalformedLine, format } from "./words.js";

export { format };

const { cockpit } = window;

export const _ = (text) => cockpit.gettext(text);

const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g;

/** Shows each hidden character as its escape, so that it cannot hide or reorder text. */
export function visible(text) {
  return String(text).replace(HIDDEN, (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The text of an error. The page's own texts are translated, and those of the daemon are shown as they are. */
export function reason(error) {
  if (error instanceof MalformedLine) return error.translated(_);
  const text = String(error?.message ?? error);
  return visible(text === "" ? text : _(text));
}

/** Makes an element. Attributes with the value undefined or false are left out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== undefined && value !== false) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

/** Turns a button off or on. A button that is off keeps the focus, so its clicks have to be ignored: see isOff. */
export function turnOff(button, off) {
  button.setAttribute("aria-disabled", String(off));
}

/** Whether a button is turned off. */
export const isOff = (button) => button.getAttribute("aria-disabled") === "true";

/** A value of the daemon: its direction of writing does not reach the text around it. */
export function value(text, kind) {
  return element("bdi", { class: kind }, visible(text ?? ""));
}

/** A UUID with a button that copies it. */
export function uuid(text) {
  const shown = value(text, "uuid");
  const attributes = { type: "button", class: "copy", "data-focus": `copy ${text}`, onclick: () => copy(text, shown) };
  return element("span", {}, shown, element("button", { ...attributes, "aria-label": format(_("Copy $0"), text) }));
}

// Without a clipboard, as over plain HTTP, the text is selected.
async function copy(text, shown) {
  try {
    await navigator.clipboard.writeText(text);
    announce(_("Copied"));
  } catch {
    getSelection().selectAllChildren(shown);
  }
}

/** A moment in the language and the time zone of the user. */
export function time(text) {
  const moment = new Date(text);
  if (Number.isNaN(moment.getTime())) return value(text ?? "");
  const form = { dateStyle: "medium", timeStyle: "medium" };
  const shown = moment.toLocaleString(cockpit.language?.replace("_", "-"), form);
  return element("time", { datetime: text }, shown);
}

/** A sign and a word: a state is never told by colour alone. */
export function mark(kind) {
  const [sign, word] = {
    good: ["✓", _("in order")],
    info: ["i", _("note")],
    warning: ["!", _("warning")],
    bad: ["✗", _("fault")],
    none: ["–", _("skipped")],
  }[kind];
  return element("span", { class: "sign", role: "img", "aria-label": word }, sign);
}

/** A table with heads, from rows of cells. A cell is a node, a text, or an object with a class and a node. */
export function table(caption, heads, rows) {
  const cells = (row) =>
    row.map((cell, place) => {
      const isObject = cell !== null && typeof cell === "object" && !(cell instanceof Node);
      const attributes = { "data-label": heads[place], class: isObject ? cell.class : undefined };
      return element("td", attributes, isObject ? cell.node : cell);
    });
  return element(
    "table",
    { "aria-label": caption },
    element("thead", {}, element("tr", {}, ...heads.map((head) => element("th", { scope: "col" }, head)))),
    element("tbody", {}, ...rows.map((row) => element("tr", {}, ...cells(row)))),
  );
}

/** Fills a list of terms. */
export function terms(list) {
  return list.flatMap(([term, shown]) => [element("dt", {}, term), element("dd", {}, shown)]);
}

const drawn = new WeakMap();

/**
 * Draws an element's content anew if the key differs from that of the last drawing. The focus stays on the element with
 * the same attribute data-focus.
 */
export function draw(parent, key, build) {
  const text = JSON.stringify(key);
  if (drawn.get(parent) === text) return;
  drawn.set(parent, text);
  const focus = parent.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  parent.replaceChildren(...[build()].flat());
  if (focus !== undefined) parent.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
}

/** A command with a button that copies it. */
export function remedy(command) {
  const code = element("code", { dir: "ltr" }, visible(command));
  const attributes = { type: "button", "data-focus": `copy ${command}`, onclick: () => copy(command, code) };
  const button = element("button", attributes, _("Copy"));
  return element("div", { class: "remedy" }, code, button);
}

/** Tells a screen reader what happened. */
export function announce(text) {
  document.getElementById("announcement").textContent = text;
}
