// Dialogs. A dialog that changes something shows first what it concerns, and its focus begins on Cancel.
import { _, announce, element, format, isOff, reason, table, turnOff, uuid, value } from "./elements.js";

const dialog = document.getElementById("dialog");
let opener;

// Another dialog may have taken the place already. The element that had the focus may have been drawn anew.
dialog.addEventListener("close", () => {
  if (dialog.open) return;
  dialog.replaceChildren();
  if (opener === undefined || document.activeElement !== document.body) return;
  document.querySelector(`main [data-focus="${CSS.escape(opener)}"]`)?.focus();
});

/**
 * Opens a dialog.
 *
 * @param title its title
 * @param content its nodes
 * @param action the change: label, word (which has to be typed before), field (an input in the content that must not be
 *     empty), destroys (whether something is lost), done (the text that is announced) and run(), which returns a promise;
 *     undefined for a dialog that only shows
 */
export function openDialog(title, content, action) {
  // One dialog at a time: a dialog of the first one takes its place.
  dialog.close();
  opener = document.activeElement?.dataset.focus ?? opener;
  const error = element("p", { class: "error", role: "alert" });
  const closing = { type: "button", onclick: () => dialog.close() };
  const cancel = element("button", closing, action ? _("Cancel") : _("Close"));
  const heading = element("h2", { id: "dialog-title", tabindex: "-1" }, title);
  const parts = [heading, ...content];
  const actions = element("div", { class: "actions ending" }, cancel);
  if (action !== undefined) {
    let isRunning = false;
    const isTyped = () => action.word === undefined || word.value.trim() === action.word;
    const word = element("input", { id: "dialog-word", type: "text", autocomplete: "off", spellcheck: "false" });
    const confirm = element("button", { type: "button", class: action.destroys ? "danger" : "primary" }, action.label);
    const isFilled = () => action.field === undefined || action.field.value.trim() !== "";
    const update = () => turnOff(confirm, isRunning || !isTyped() || !isFilled());
    // The user may have left the dialog, and another one may have its place. The event of the end comes later.
    const isShown = () => dialog.open && confirm.isConnected;
    for (const input of [word, action.field]) input?.addEventListener("input", update);
    update();
    confirm.addEventListener("click", async () => {
      if (isOff(confirm)) return;
      isRunning = true;
      update();
      try {
        await action.run();
        if (isShown()) dialog.close();
        announce(action.done);
      } catch (fault) {
        if (isShown()) error.textContent = refusal(fault);
        else announce(refusal(fault));
      }
      isRunning = false;
      update();
    });
    if (action.word !== undefined) {
      const label = format(_("This cannot be undone. Type “$0” to go on:"), action.word);
      parts.push(element("p", {}, element("label", { for: "dialog-word" }, label)), word);
    }
    actions.append(confirm);
  }
  dialog.replaceChildren(...parts, error, actions);
  dialog.showModal();
  // A dialog without an action is read from its beginning: its button may be far below.
  (action === undefined ? heading : cancel).focus();
}

/** The text of a refusal, with its code. */
export function refusal(error) {
  return error?.code === undefined ? reason(error) : format(_("Refused ($0): $1"), error.code, reason(error));
}

/** Asks, and opens a dialog with what comes; a refusal is shown in its place. */
export async function openWithAnswer(title, ask, build) {
  try {
    const { content, action } = build(await ask());
    openDialog(title, content, action);
  } catch (error) {
    openDialog(title, [element("p", { class: "error" }, refusal(error))]);
  }
}

/** Says how many rows are not shown. */
export function rest(all, shown) {
  return all > shown ? [element("p", {}, format(_("… and $0 more"), all - shown))] : [];
}

/** The identifiers of a dry run, as a table. */
export function previewTable(caption, rows) {
  const shown = rows.slice(0, 200).map(({ words, attributes }) => {
    return [value(words[0]), uuid(words[1]), value(attributes.get("app") ?? attributes.get("vendor") ?? "")];
  });
  const parts = [table(caption, [_("Level"), _("Identifier"), _("App or vendor")], shown)];
  parts.push(...rest(rows.length, shown.length));
  return scrolled(caption, ...parts);
}

/** A box of limited height. */
export function scrolled(label, ...parts) {
  return element("div", { class: "scrolled", tabindex: "0", role: "group", "aria-label": label }, ...parts);
}
