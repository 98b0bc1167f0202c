// The words of the line protocol; see identityd-protocol(7), section "Grammar".

/** The longest request that the daemon reads, in bytes, with its line feed. */
export const LONGEST_REQUEST = 98_304;

/** Marks a text of the page's own, which is translated where it is shown. */
export const _ = (text) => text;

/** A refusal by the daemon. Its code is for programs, and its message is for people. */
export class Refusal extends Error {
  constructor(code, message) {
    super(message);
    this.name = "Refusal";
    this.code = code;
  }
}

/** Puts values into a text in place of $0, $1 and so on. */
export const format = (text, ...values) => text.replace(/\$([0-9])/g, (whole, place) => values[place] ?? whole);

const MALFORMED = _("the daemon sent a malformed line of $0 characters: $1");

/** A line that the protocol does not allow. Its message has no part of the line, which may hold a token. */
export class MalformedLine extends Error {
  /**
   * @param length the length of the line
   * @param reason a text of the page's own
   * @param values the values in the reason
   */
  constructor(length, reason, ...values) {
    const message = (translate) => format(translate(MALFORMED), length, format(translate(reason), ...values));
    super(message(_));
    this.name = "MalformedLine";
    /** The message in the language of a function that translates a text. */
    this.translated = message;
  }
}

const NAME = /[A-Za-z][A-Za-z0-9._-]*=/y;
const QUOTED = /"(?:[^"\\\u0000-\u001f]|\\.)*"/y;
const BARE = /[^ "\\\u0000-\u001f\u007f-\u009f]+/y;

/**
 * Splits the words of a line.
 *
 * @param text the words
 * @param length the length of the whole line, which ends with them
 * @returns the positional words, and a map of the attributes
 * @throws MalformedLine
 */
export function parseWords(text, length = text.length) {
  const words = [];
  const attributes = new Map();
  let place = 0;
  const take = (pattern) => {
    pattern.lastIndex = place;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) place += found.length;
    return found;
  };
  while (place < text.length) {
    if (text[place] === " ") {
      place += 1;
      continue;
    }
    const start = place;
    const name = take(NAME);
    const quoted = take(QUOTED);
    const value = quoted === undefined ? take(BARE) : unquoted(quoted);
    if (value === undefined || (place < text.length && text[place] !== " ")) {
      throw new MalformedLine(length, _("the word at character $0 cannot be read"), length - text.length + start + 1);
    }
    if (name === undefined) words.push(value);
    else attributes.set(name.slice(0, -1).toLowerCase(), value);
  }
  return { words, attributes };
}

// Undefined for an escape that does not exist.
function unquoted(quoted) {
  try {
    return JSON.parse(quoted);
  } catch {
    return undefined;
  }
}

/**
 * Makes the line of a request, with its line feed.
 *
 * @param words the words of the verb, and its operands
 * @param attributes an object of names and values; undefined values are left out
 * @throws Refusal if the daemon would not read the line
 */
export function requestLine(words, attributes = {}) {
  const parts = words.map((word) => (/^[a-z-]+$/.test(word) ? word : quoted(word)));
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) parts.push(`${name}=${quoted(value)}`);
  }
  const line = `${parts.join(" ")}\n`;
  const { length } = new TextEncoder().encode(line);
  if (length > LONGEST_REQUEST) throw new Refusal("too-long", _("the request is too long"));
  return line;
}

// JSON leaves U+007F to U+009F as they are, and the daemon does not.
function quoted(value) {
  const escape = (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(String(value)).replace(/[\u007f-\u009f]/g, escape);
}

/**
 * Reads a line from the daemon.
 *
 * @returns an object with its kind, "row", "ok", "err", "event" or "lag", and the parts of that kind
 * @throws MalformedLine
 */
export function parseLine(line) {
  const space = line.indexOf(" ");
  const kind = space < 0 ? line : line.slice(0, space);
  const rest = space < 0 ? "" : line.slice(space + 1);
  switch (kind) {
    case "*":
      return { kind: "row", ...parseWords(rest, line.length) };
    case "OK":
      return { kind: "ok", ...parseWords(rest, line.length) };
    case "ERR": {
      const [, code, text] = /^([a-z-]+)(?: (.*))?$/s.exec(rest) ?? [];
      if (code === undefined) throw new MalformedLine(line.length, _("the refusal has no code"));
      return { kind: "err", code, text: text ?? "" };
    }
    case "EVENT": {
      const { words, attributes } = parseWords(rest, line.length);
      const sequence = Number(words[0]);
      if (!/^[0-9]+$/.test(words[0] ?? "") || !Number.isSafeInteger(sequence) || words.length < 2) {
        throw new MalformedLine(line.length, _("the event has no number"));
      }
      if (words[1] === "lag") return { kind: "lag", sequence, attributes };
      if (words.length < 3) throw new MalformedLine(line.length, _("the event has no name"));
      return { kind: "event", sequence, topic: words[1], name: words[2], attributes };
    }
    default:
      throw new MalformedLine(line.length, _("it is of no kind that is known"));
  }
}
