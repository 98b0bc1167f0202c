#!/usr/bin/python3
"""The wheel, and the files that the packages of distributions install."""

import configparser, os, shutil, subprocess, sys, tempfile, unittest, zipfile
from pathlib import Path

from support import PACKAGE


class PackageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="identityd-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.modules, self.programs = self.folder / "modules", self.folder / "programs"
        subprocess.run([PACKAGE / "install", self.modules, self.programs], check=True, umask=0o077)

    def test_the_wheel_has_the_files_that_distributions_install(self):
        # setuptools writes into the tree.
        shutil.copytree(PACKAGE, self.folder / "tree", ignore=shutil.ignore_patterns("__pycache__"))
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-index", "--no-build-isolation"]
        subprocess.run([*pip, "--wheel-dir", self.folder, self.folder / "tree"], check=True, timeout=120)
        (wheel,) = self.folder.glob("*.whl")
        self.assertTrue(wheel.name.endswith("-py3-none-any.whl"))
        with zipfile.ZipFile(wheel) as file:
            packed = {name: file.read(name) for name in file.namelist()}
        installed = {
            str(one.relative_to(self.modules)): one.read_bytes() for one in self.modules.rglob("*.*") if one.is_file()
        }
        code = {name: it for name, it in installed.items() if name.startswith("identityd/")}
        self.assertEqual({name: it for name, it in packed.items() if name.startswith("identityd/")}, code)
        self.assertIn("identityd/py.typed", code)
        points = []
        for files in (packed, installed):
            (text,) = (it for name, it in files.items() if name.endswith(".dist-info/entry_points.txt"))
            parsed = configparser.ConfigParser()
            parsed.read_string(text.decode())
            points.append({name: dict(parsed[name]) for name in parsed.sections()})
        self.assertEqual(*points)

    def test_the_files_have_the_modes_of_packages_whatever_the_umask(self):
        for folder, mode in ((self.modules, 0o644), (self.programs, 0o755)):
            files = [file for file in folder.rglob("*") if file.is_file()]
            self.assertTrue(files)
            for file in files:
                self.assertEqual(os.stat(file).st_mode & 0o777, mode, file)

    def test_an_installed_package_is_found_with_its_programs(self):
        code = """
from importlib.metadata import distribution
made = distribution("identityd")
print(made.version, [one.load().__name__ for one in made.entry_points if one.group == "console_scripts"])
"""
        environment = {"PYTHONPATH": str(self.modules), "PYTHONDONTWRITEBYTECODE": "1"}
        found = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        self.assertRegex(found.stdout, r"^\d+\.\d+\.\d+ \['main', 'main'\]$")
        self.assertEqual(len(list(self.programs.iterdir())), 2)


if __name__ == "__main__":
    unittest.main()
