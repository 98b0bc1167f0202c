// The latest events, newest first.
import { _, draw, element, format, table, time, value } from "./elements.js";

/** The choices of the user. While the list is paused, `held` has the events at that moment. */
export const choice = { text: "", held: null };

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
  const key = [text, shown.length, shown.at(-1)?.sequence, shown[0]?.sequence, page.wasFollowing];
  draw(document.getElementById("events-table"), key, () => {
    if (shown.length === 0) {
      return element("p", { class: "quiet" }, page.wasFollowing ? _("No events yet.") : _("not known"));
    }
    const cells = [...shown].reverse().map(eventCells);
    const box = { class: "scrolled", tabindex: "0", role: "group", "aria-label": _("Live events") };
    return element("div", box, table(_("Live events"), [_("Time"), _("Number"), _("Event"), _("Values")], cells));
  });
}

function describe({ topic, name, attributes, missed }) {
  return topic === undefined ? `${missed}` : `${topic} ${name} ${[...attributes].flat().join(" ")}`;
}

function eventCells({ sequence, topic, name, attributes, missed }) {
  if (topic === undefined) {
    const text = format(_("$0 events are missing here."), missed);
    return ["–", "–", missed === undefined ? _("Events are missing here.") : text, ""];
  }
  const shown = [...attributes].filter(([name]) => name !== "time");
  const values = shown.flatMap(([name, text]) => [value(`${name}=`, "quiet"), value(text), " "]);
  return [
    { class: "nowrap", node: time(attributes.get("time")) },
    String(sequence),
    value(`${topic} ${name}`),
    element("span", {}, ...values),
  ];
}
