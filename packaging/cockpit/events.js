// The latest events, newest first.
import { scrolled } from "./dialog.js";
import { _, draw, element, format, table, time, uuid, value } from "./elements.js";
import { sentence } from "./sentences.js";

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/**
 * The choices of the user. While the list is paused, `held` has the events at that moment. With `isRaw` it has the
 * daemon's words in place of sentences.
 */
export const choice = { text: "", held: null, isRaw: false };

/** Stops the list, or lets it go on. */
export function togglePause(model) {
  choice.held = choice.held === null ? [...model.events] : null;
  return choice.held !== null;
}

/** Draws the list. */
export function drawEvents(page) {
  const events = choice.held ?? page.model.events;
  const text = choice.text.trim().toLowerCase();
  const shown = text === "" ? events : events.filter((event) => describe(event).toLowerCase().includes(text));
  const key = [choice.isRaw, text, shown.length, shown.at(-1)?.sequence, shown[0]?.sequence, page.wasFollowing];
  draw(document.getElementById("events-table"), key, () => {
    if (shown.length === 0) {
      return element("p", { class: "quiet" }, page.wasFollowing ? _("No events yet.") : _("not known"));
    }
    const cells = [...shown].reverse().map(eventCells);
    const heads = [_("Time"), _("Number"), _("Event")];
    return scrolled(_("Live events"), table(_("Live events"), heads, cells));
  });
}

// The text in which the filter seeks: that of the sentence and the daemon's words.
function describe(event) {
  const { topic, name, attributes, missed } = event;
  if (topic === undefined) return `${missed}`;
  const told = sentence(event);
  return `${told ? format(told.text, ...told.values) : ""} ${topic} ${name} ${[...attributes].flat().join(" ")}`;
}

function eventCells(event) {
  const { sequence, topic, attributes, missed } = event;
  if (topic === undefined) {
    const text = format(_("$0 events are missing here."), missed);
    return ["–", "–", missed === undefined ? _("Events are missing here.") : text];
  }
  const told = choice.isRaw ? null : sentence(event);
  const shown = element("span", {}, ...(told ? sentenceNodes(told) : rawNodes(event)));
  return [{ class: "nowrap", node: time(attributes.get("time")) }, String(sequence), shown];
}

function sentenceNodes({ text, values }) {
  return text.split(/\$([0-9])/).map((part, place) => {
    if (place % 2 === 0) return part;
    const word = values[part];
    return UUID.test(word) ? uuid(word) : value(word, "word");
  });
}

function rawNodes({ topic, name, attributes }) {
  const shown = [...attributes].filter(([name]) => name !== "time");
  const values = shown.flatMap(([name, text]) => [" ", value(`${name}=`, "quiet"), value(text)]);
  return [value(`${topic} ${name}`), ...values];
}
