#!/usr/bin/python3
"""The types of the package, as mypy(1) checks them, and its description."""

import re, subprocess, sys, tempfile, tomllib, unittest

from support import PACKAGE, ROOT

USE = """
import asyncio
from datetime import datetime
from uuid import UUID
from identityd import Client, Event, Gap, Request, aio, verbs

def use(client: Client) -> tuple[UUID, bytes, str | None, int]:
    for step in client.events("item"):
        if isinstance(step, Event):
            moment: datetime | None = step.time
        elif isinstance(step, Gap):
            topics: list[str] = [value.topic for value in step.values]
    uuids: tuple[UUID, ...] = client.ask(verbs.get_uuids(count=3))
    request: Request[int] = verbs.item_delete(service="s")
    data = client.ask(verbs.item_read(service="s", account="a")).data
    return uuids[0], data, client.ask(verbs.account()), client.ask(request)

async def main() -> None:
    async with aio.Client() as client:
        device: UUID = (await client.ask(verbs.get_device())).uuid
        async for step in client.events():
            print(step, device)

asyncio.run(main())
"""
WRONG = {
    'client.ask(verbs.item_put(service="s", data=b"x"))': "call-arg",
    'client.ask(verbs.item_put(service="s", account="a", data="text"))': "arg-type",
    "client.ask(verbs.get_uuid(version=5))": "arg-type",
    "x: str = client.ask(verbs.get_uuid())": "assignment",
}


def mypy(*words):
    with tempfile.TemporaryDirectory() as cache:
        ended = subprocess.run(
            [
                sys.executable,
                "-m",
                "mypy",
                "--strict",
                "--config-file",
                str(PACKAGE / "pyproject.toml"),
                "--cache-dir",
                cache,
                *words,
            ],
            capture_output=True,
            text=True,
            env={"MYPYPATH": str(PACKAGE), "PATH": "/usr/bin:/bin"},
            timeout=300,
        )
    return ended.returncode, ended.stdout + ended.stderr


class TypeTest(unittest.TestCase):
    def test_the_package_has_no_fault_of_types(self):
        status, told = mypy(PACKAGE / "identityd")
        self.assertEqual(status, 0, told)

    def test_programs_on_the_package_are_checked(self):
        status, told = mypy("-c", USE)
        self.assertEqual(status, 0, told)
        code = "from identityd import Client, verbs\nclient = Client()\n" + "\n".join(WRONG)
        status, told = mypy("-c", code)
        self.assertEqual(re.findall(r"\[(\S+)\]$", told, re.MULTILINE), list(WRONG.values()), told)

    def test_the_package_has_the_version_of_the_programs_and_no_dependency(self):
        project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
        changelog = (ROOT / "packaging/debian/changelog").read_text()
        self.assertEqual(project["version"], re.match(r"identityd \((.+?)-\d+\)", changelog)[1])
        self.assertEqual(project["dependencies"], [])

    def test_no_module_imports_anything_but_the_standard_library(self):
        optional = {"keyring.py": {"keyring"}, "opentelemetry.py": {"opentelemetry"}}
        for file in PACKAGE.glob("identityd/**/*.py"):
            found = set(re.findall(r"^ *(?:from|import) ([a-z_0-9]+)", file.read_text(), re.MULTILINE))
            foreign = found - sys.stdlib_module_names - {"__future__", "identityd"}
            self.assertLessEqual(foreign, optional.get(file.name, set()), file)


if __name__ == "__main__":
    unittest.main()
