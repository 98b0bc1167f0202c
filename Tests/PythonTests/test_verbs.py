#!/usr/bin/python3
"""The examples of all verbs in identityd-protocol(7), with the requests and answers of the package."""

import base64, dataclasses, importlib.machinery, importlib.util, re, subprocess, sys, unittest

from support import PACKAGE, Daemon, DaemonCase

from identityd import _words, errors, verbs
from identityd._engine import Engine
from identityd.client import _run

sys.path.insert(0, str(PACKAGE))
import verb_table

loader = importlib.machinery.SourceFileLoader("generate", str(PACKAGE / "generate"))
generate = importlib.util.module_from_spec(importlib.util.spec_from_loader("generate", loader))
sys.modules["generate"] = generate
loader.exec_module(generate)

# Examples of a family build on each other, so each family has a daemon.
FAMILIES = [
    {"ping", "hello", "help", "whoami", "status", "stats", "seal", "machine", "quit"},
    {"get", "check", "resolve", "history", "renew", "migrate"},
    {"app"},
    {"account", "devices"},
    {"fleet"},
    {"item"},
    {"version"},
    {"token"},
    {"prove", "proof"},
    {"subscribe", "unsubscribe"},
    {"key", "backup", "restore"},
]
KINDS = {
    "<uuid>": "[0-9a-f-]{36}",
    "<time>": "[0-9T:.-]{23}Z",
    "<number>": "[0-9]+",
    "<word>": '(?:"(?:[^"]|\\\\.)*"|[^ ]+)',
}


def value(parameter, text):
    """The value of an argument in Python."""
    kind = generate.kind(parameter)
    if kind == "bytes":
        return base64.b64decode(text + "=" * (-len(text) % 4))
    if kind == "bool":
        return text == "yes"
    return int(text) if text.isdigit() and ("int" in kind or kind == "Literal[4, 7]") else text


def request(verb, example):
    """The request that the package makes for an example."""
    line = _words.line(b"OK " + example.encode())
    given = dict(zip((one.name for one in verb.operands), line.words[len(verb.words.split(" ")) :]))
    given |= line.attributes
    # The special form first.
    for function in reversed(generate.functions(verb)):
        fixed = dict(function.fixed)
        left = {key: it for key, it in given.items() if fixed.get(key) != it}
        if (
            fixed.items() <= given.items()
            and set(function.needs) <= left.keys()
            and not left.keys() & {*function.lacks}
        ):
            break
    else:
        raise AssertionError(f"no function for {example}")
    positional, named = [], {}
    for one in verb.operands:
        if one.name in left:
            positional.append(value(one, left.pop(one.name)))
    for one in verb.attributes:
        found = {
            key[len(one.name) :]: left.pop(key) for key in list(left) if one.is_prefix and key.startswith(one.name)
        }
        if found:
            named[generate.python(one.name)] = found
        elif one.name in left:
            named[generate.python(one.name)] = value(one, left.pop(one.name))
    assert not left, left
    return getattr(verbs, function.name)(*positional, **named)


def pattern(line):
    """The regular expression of a line of an example."""
    if line == "…":
        return r"(?:.*\n)*?"
    text = re.escape(line).replace(r"\ …", "(?: .*)?").replace(r"…", ".*")
    for kind, form in KINDS.items():
        text = text.replace(re.escape(kind), form)
    return text + "\n"


def written(line):
    """A line as the daemon wrote it."""
    if line.kind == "ERR":
        return " ".join(["ERR", *line.words]) + "\n"
    words = [_words.value(one) for one in line.words]
    words += [_words.attribute(name, one) for name, one in line.attributes.items()]
    return " ".join([line.kind, *words]) + "\n"


class VerbTest(unittest.TestCase):
    def test_the_modules_are_those_that_the_table_makes(self):
        made = subprocess.run([PACKAGE / "generate", "--check"], capture_output=True, text=True)
        self.assertEqual((made.returncode, made.stderr), (0, ""))

    def test_each_verb_has_a_function_and_a_family(self):
        table = verb_table.load()
        self.assertGreater(len(table), 60)
        for verb in table:
            self.assertTrue(verb.examples, verb.words)
            self.assertTrue(callable(getattr(verbs, verb.words.replace(" ", "_"))), verb.words)
            self.assertEqual(sum(verb.words.split(" ")[0] in family for family in FAMILIES), 1)

    def test_the_classes_of_errors_are_those_of_the_manual(self):
        part = verb_table.MANUAL.read_text().split(".Ss Errors\n")[1].split(".Sh ")[0]
        self.assertEqual(set(re.findall(r"^\.It Cm (\S+)$", part, re.MULTILINE)), set(errors.CLASSES))


class ExampleTest(DaemonCase):
    def setUp(self):
        if not Daemon.is_admin():
            self.skipTest("some examples are for admins")

    def test_the_answer_to_each_example_is_understood_completely(self):
        seen = 0
        for family in FAMILIES:
            super().setUp()
            engine = Engine(self.daemon.socket, "system-or-own", 60.0)
            for verb in verb_table.load():
                if verb.words.split(" ")[0] not in family:
                    continue
                for example, reply in verb.examples:
                    with self.subTest(example):
                        self.check(engine, verb, example, reply)
                        seen += 1
                    engine.drop()
        self.assertGreater(seen, 80)

    def check(self, engine, verb, example, reply):
        made = request(verb, example)
        wanted = _words.line(b"OK " + example.encode())
        sent = _words.line(b"OK " + made.line.rstrip(b"\n"))
        # The manual leaves out the padding of Base64 in places.
        sent.attributes.update({key: it for key, it in wanted.attributes.items() if key in ("data", "key", "record")})
        self.assertEqual((sent.words, sent.attributes), (wanted.words, wanted.attributes))
        answer = _run(engine._answer(made, None))
        lines = "".join(map(written, [*answer.rows, answer.final]))
        self.assertRegex(lines, "^" + "".join(map(pattern, reply)) + "$")
        if answer.final.kind == "ERR":
            with self.assertRaises(errors.CLASSES[answer.final.words[0]]) as raised:
                made.value(answer)
            self.assertEqual((raised.exception.code, raised.exception.text), answer.final.words)
            return
        values = made.value(answer)
        parts = zip(answer.rows, values) if isinstance(values, tuple) else [(answer.final, values)]
        for line, one in parts:
            if dataclasses.is_dataclass(one) and verb.words not in ("stats", "status"):
                self.check_fields(line, one)
        if isinstance(values, tuple):
            self.assertEqual(len(values), len(answer.rows))

    def check_fields(self, line, one):
        """Checks that a value has all that its line says."""
        fields = {field.name for field in dataclasses.fields(one)}
        for name in line.attributes:
            self.assertTrue(generate.python(name) in fields or name.startswith("attr."), name)
        named = {generate.python(name) for name in line.attributes} | {
            "attributes",
            "apps",
            "devices",
            "runs",
            "snapshot",
        }
        words = [name for name in fields - named if getattr(one, name) is not None]
        self.assertEqual(len(words), len(line.words), f"{line.words} {words}")

    def test_rows_of_each_kind_are_understood(self):
        """The examples of some verbs have no rows."""
        ask = self.ask_after_setup()
        device = ask(verbs.get_device()).uuid
        ask(verbs.get_installation())
        self.assertEqual([row.app for row in ask(verbs.app_list())], [ask(verbs.whoami()).app])
        self.assertEqual([(row.uuid, row.self) for row in ask(verbs.devices())], [(device, True)])
        ask(verbs.item_put(service="s", account="a", data=b"x", attributes={"Host": "mx 1"}, this_device_only=True))
        (row,) = ask(verbs.item_find(attributes={"host": "mx 1"}))
        (found,) = ask(verbs.item_find_secrets(attributes={"host": "mx 1"}))
        self.assertEqual((found.data, found.account), (b"x", "a"))
        self.assertNotIn("x'", repr(found))
        ask(verbs.item_update(where_attributes={"host": "mx 1"}, data=b"y"))
        self.assertEqual(ask(verbs.item_read(attributes={"host": "mx 1"})).data, b"y")
        self.assertEqual((row.attributes, row.this_device_only, row.label), ({"host": "mx 1"}, True, None))
        status = ask(verbs.status())
        self.assertEqual((status.items, status.protocol, status.store), (1, 1, "ok"))
        self.assertGreater(len(status.manifest_folder), 1)
        metrics = {(one.name, *one.labels.values()): one.value for one in ask(verbs.stats())}
        self.assertEqual(metrics["store-condition", "ok"], 1)
        backup = b"".join(ask(verbs.backup(key=bytes(32))))
        ask(verbs.restore_begin(key=bytes(32)))
        self.assertEqual(ask(verbs.restore_add(data=backup)), len(backup))
        rows = ask(verbs.restore_end(dry_run=True))
        self.assertEqual(
            (rows[0].record, rows[0].outcome, rows[0].attributes["value"]), ("device", "kept", str(device))
        )
        self.assertEqual([row.level for row in ask(verbs.seal_dry_run())].count("device"), 1)
        ask(verbs.account_set("a@example.org"))
        left = ask(verbs.account_set_dry_run("b@example.org"))
        self.assertEqual((left.count, left.previous, left.devices), (0, "a@example.org", ()))

    def ask_after_setup(self):
        super().setUp()
        return self.client.ask


if __name__ == "__main__":
    unittest.main()
