// A document without a browser, which has what the page makes, and counts the elements.

/** The number of elements that were made. */
export const made = { count: 0 };

class Element {
  children = [];
  dataset = {};
  #attributes = new Map();

  constructor() {
    made.count += 1;
  }

  setAttribute(name, value) {
    this.#attributes.set(name, value);
  }

  getAttribute(name) {
    return this.#attributes.get(name) ?? null;
  }

  append(...children) {
    this.children.push(...children);
  }

  replaceChildren(...children) {
    this.children = children;
  }

  addEventListener() {}

  contains() {
    return false;
  }

  /** The number of elements within this one. */
  get size() {
    return this.children.filter((child) => child instanceof Element).reduce((sum, child) => sum + 1 + child.size, 0);
  }

  /** The texts within this one. */
  get texts() {
    return this.children.flatMap((child) => (child instanceof Element ? child.texts : [String(child)]));
  }
}

const places = new Map();

/** The element at a place of the page, which is made when it is first asked for. */
export function placeOf(selector) {
  if (!places.has(selector)) places.set(selector, new Element());
  return places.get(selector);
}

globalThis.Node = Element;
globalThis.document = {
  activeElement: null,
  createElement: () => new Element(),
  getElementById: (id) => placeOf(`#${id}`),
  querySelector: placeOf,
};
globalThis.window = { cockpit: { gettext: (text) => text, language: "en" } };
