// A menu of the actions that are rare or dangerous, as PatternFly has it (overflow menu).
import { element, isOff } from "./elements.js";

/**
 * Makes a menu of buttons, closed at first.
 *
 * @param label the name of the menu for a screen reader
 * @param name the name by which a drawing finds the focus again
 */
export function menu(label, name, buttons) {
  const attributes = { type: "button", class: "kebab", "aria-haspopup": "menu", "aria-label": label };
  const toggle = element("button", { ...attributes, "data-focus": `menu ${name}` }, "⋮");
  const list = element("div", { class: "items", role: "menu", "aria-label": label }, ...buttons);
  const box = element("div", { class: "menu" }, toggle, list);
  const set = (isOpen) => {
    list.hidden = !isOpen;
    toggle.setAttribute("aria-expanded", String(isOpen));
  };
  const move = (step) => {
    const place = buttons.indexOf(document.activeElement) + step;
    buttons[(place + buttons.length) % buttons.length].focus();
  };
  const close = () => {
    set(false);
    toggle.focus();
  };
  for (const button of buttons) {
    button.setAttribute("role", "menuitem");
    button.setAttribute("tabindex", "-1");
  }
  set(false);
  toggle.addEventListener("click", () => {
    set(list.hidden);
    if (!list.hidden) buttons[0].focus();
  });
  // Before the action of the button: a dialog gives the focus back to the element that had it, which has to be visible.
  list.addEventListener("click", ({ target }) => isOff(target) || close(), true);
  list.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step === undefined && event.key !== "Escape") return;
    // Escape would close the dialog around the menu, too.
    event.preventDefault();
    if (step === undefined) close();
    else move(step);
  });
  box.addEventListener("focusout", ({ relatedTarget }) => box.contains(relatedTarget) || set(false));
  return box;
}
