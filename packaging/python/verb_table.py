"""The verb table, as identityd-protocol(7) and the JSON Schema of identityctl(1) have it.

Both files are made from the daemon's own table. The manual has the requests and examples, the schema the fields of the
answers with their types. Which of them are words without a name is only in POSITIONAL.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PACKAGING = Path(__file__).resolve().parent.parent
MANUAL = PACKAGING / "man/identityd-protocol.7"
SCHEMA = PACKAGING / "identityctl.schema.json"

# The words of an answer that have no name in a line, in order, by verb: of the final line or of each row.
POSITIONAL = {
    "prove": ["proof"],
    "proof keys": ["keys"],
    "proof rotate": ["key"],
    "account": ["account"],
    "app forget": ["app", "count"],
    "app list": ["app"],
    "check": ["result", "uuid"],
    "account set": ["uuid", "count"],
    "account clear": ["uuid", "count"],
    "devices": ["uuid"],
    "devices forget": ["uuid", "count"],
    "devices put": ["result"],
    "fleet next": ["counter"],
    "fleet open": ["uuid", "kind", "run"],
    "fleet records": ["uuid"],
    "get boot": ["uuid"],
    "get device": ["uuid"],
    "get installation": ["uuid"],
    "get key": ["uuid"],
    "get session": ["uuid"],
    "get uuid": ["uuid"],
    "get vendor": ["uuid"],
    "hello": ["program", "version"],
    "help": ["verb"],
    "history": ["uuid"],
    "item delete": ["deleted"],
    "item put": ["result"],
    "key recover": ["source"],
    "key rotate": ["source"],
    "machine acknowledge": ["kind"],
    "machine compare": ["machine"],
    "migrate device": ["uuid"],
    "migrate installation": ["uuid"],
    "renew": ["level", "uuid"],
    "resolve": ["level"],
    "restore add": ["bytes"],
    "restore end": ["record", "outcome"],
    "seal": ["level", "uuid"],
    "stats": ["app"],
    "subscribe": ["sequence", "topic"],
    "token delete": ["token"],
    "token get": ["token"],
    "token invalidate": ["result"],
    "token list": ["token"],
    "token put": ["result"],
    "version claim": ["result"],
    "version compare": ["order"],
    "version history": ["version"],
    "version report": ["state", "version"],
    "version state": ["state", "version"],
    "whoami": ["app"],
}
# identityctl(1) writes a backup into a file, so the schema does not have the rows of this verb.
BACKUP = {"type": "array", "items": {"properties": {"data": {"contentEncoding": "base64"}}, "required": ["data"]}}


@dataclass(frozen=True)
class Parameter:
    """An operand or an attribute of a verb. `value` is an attribute's value as the manual writes it."""

    name: str
    value: str
    is_required: bool
    repeats: bool = False
    # Whether the name in the manual is only the beginning of the names, as in attr.NAME=.
    is_prefix: bool = False


@dataclass(frozen=True)
class Field:
    """A field of an answer; `kind` is text, number, boolean, time, uuid, words, bytes or texts (a mapping)."""

    name: str
    kind: str
    is_word: bool
    is_optional: bool
    is_nullable: bool = False


@dataclass(frozen=True)
class Answer:
    """An answer: `final` are the fields of its last line, `rows` those of each row; None if there are no rows."""

    final: tuple[Field, ...]
    rows: tuple[Field, ...] | None = None
    # The name of the rows among the fields of the final line.
    rows_name: str = ""
    is_open: bool = False


@dataclass(frozen=True)
class Verb:
    """A verb with its requests, its answers (two if an attribute decides) and its examples."""

    words: str
    operands: tuple[Parameter, ...]
    attributes: tuple[Parameter, ...]
    summary: str
    answers: tuple[Answer, ...]
    # Each example is a request and the lines of its reply.
    examples: tuple[tuple[str, tuple[str, ...]], ...]


def plain(text: str) -> str:
    """The text of a line in mdoc(7) that the manual's escapes stand for."""
    return text.replace("\\&...", "…").replace("\\&", "").replace("\\-", "-").replace("\\e", "\\")


def parameters(entry: str) -> tuple[str, list[Parameter], list[Parameter]]:
    """Splits an entry of the manual into the verb, its operands and its attributes."""
    entry = re.sub(r" Ns (?:Ar )?", "", entry.replace(" Oc", ""))
    words, *rest = re.split(r" (?=Oo |Ar |Cm )(?<!Oo )", entry)
    operands, attributes = [], []
    for macros in rest:
        *opening, macro, text = macros.split(" ")
        repeats = text.endswith("...")
        name, _, value = plain(text.removesuffix("...")).partition("=")
        is_prefix = name.endswith(".NAME")
        if is_prefix:
            name = name.removesuffix("NAME")
        made = Parameter(name, value, not opening, repeats, is_prefix)
        (operands if macro == "Ar" else attributes).append(made)
    return plain(words), operands, attributes


def field(verb: str, name: str, schema: dict[str, Any], is_required: bool) -> Field:
    """The field of an answer that a property of the schema describes."""
    is_nullable = "anyOf" in schema
    if is_nullable:
        schema = schema["anyOf"][0]
    if "$ref" in schema:
        kind = schema["$ref"].rpartition("/")[2]
    elif "contentEncoding" in schema:
        kind = "bytes"
    elif schema.get("items", {}).get("type") == "object":
        kind = "text"
    else:
        kind = {"string": "text", "number": "number", "boolean": "boolean", "array": "words", "object": "texts"}[
            schema["type"]
        ]
    return Field(name, kind, name in POSITIONAL.get(verb, []), not is_required, is_nullable)


def fields(verb: str, schema: dict[str, Any]) -> tuple[Field, ...]:
    """The fields of a line: its words in their order, then the others by name."""
    required, order = schema.get("required", []), POSITIONAL.get(verb, [])
    made = [field(verb, name, value, name in required) for name, value in schema.get("properties", {}).items()]
    return tuple(sorted(made, key=lambda field: (order.index(field.name) if field.is_word else len(order), field.name)))


def answer(verb: str, schema: dict[str, Any]) -> Answer:
    """The answer that a schema describes."""
    if schema["type"] == "array":
        return Answer((), fields(verb, schema["items"]), is_open="additionalProperties" in schema["items"])
    properties = dict(schema.get("properties", {}))
    for name, value in list(properties.items()):
        is_list = value.get("type") == "array" and value["items"].get("type") == "object"
        # The list in a document that is one word is no list of rows.
        if is_list and name not in POSITIONAL.get(verb, []):
            rows = fields(verb, properties.pop(name)["items"])
            final = fields(verb, {"properties": properties, "required": schema["required"]})
            return Answer(final, rows, name, "additionalProperties" in value["items"])
    return Answer(fields(verb, schema))


def answers(verb: str, schema: dict[str, Any]) -> tuple[Answer, ...]:
    """The answers of a verb. Those of status and stats have a form of their own, as has that of backup."""
    if verb == "status":
        return ()
    if verb == "backup":
        return (answer(verb, BACKUP),)
    choices = schema["anyOf"] if "anyOf" in schema else [schema]
    return tuple(answer(verb, choice) for choice in choices if not (verb == "stats" and choice["type"] == "object"))


def load() -> list[Verb]:
    """Reads the table, in the order of the manual."""
    schema = json.loads(SCHEMA.read_text())["$defs"]
    part = MANUAL.read_text().split('.\\" BEGIN VERBS\n')[1].split('.\\" END VERBS\n')[0]
    verbs = []
    for entry in part.split(".It Ic ")[1:]:
        head, _, rest = entry.partition("\n")
        summary, *lines = rest.partition("\n.Ed")[0].splitlines()
        words, operands, attributes = parameters(head)
        examples: list[tuple[str, list[str]]] = []
        for line in map(plain, lines[1:]):
            if line.startswith("> "):
                examples.append((line[2:], []))
            else:
                examples[-1][1].append(line)
        # The operands of these may be repeated, which the manual says in its text.
        repeated = {"help", "subscribe", "unsubscribe"}
        operands = [Parameter(one.name, "", one.is_required, words in repeated) for one in operands]
        verbs.append(
            Verb(
                words,
                tuple(operands),
                tuple(attributes),
                plain(summary),
                answers(words, schema[words.replace(" ", "-")]),
                tuple((request, tuple(reply)) for request, reply in examples),
            )
        )
    return verbs


def status_rows() -> dict[str, tuple[str, bool]]:
    """The rows of status: by name, the kind of the value and whether a row may come several times."""
    rows = {}
    for name, value in json.loads(SCHEMA.read_text())["$defs"]["status"]["properties"].items():
        repeats = value.get("type") == "array"
        rows[name] = (field("status", name, value["items"] if repeats else value, False).kind, repeats)
    return rows
