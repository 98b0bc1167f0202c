#!/usr/bin/python3
"""The library for C, with the real daemon. IDENTITYD_RELEASE_BIN has the folder of its program."""

import os, pathlib, re, shutil, subprocess, tempfile, unittest

from daemons import ROOT, Daemon
from programs import ADDRESS, COMMON, COMPILERS, FOLDER, LIBRARY, SOURCES, THREAD, WARNINGS, compiled, environment, run

class BuildTest(unittest.TestCase):
    def output(self, *command, **options):
        return subprocess.run(command, check=True, capture_output=True, text=True, **options).stdout

    def test_no_compiler_warns(self):
        for compiler in COMPILERS:
            for level in ("-O0", "-O2"):
                options = [*COMMON, level, "-fPIC", "-fvisibility=hidden", "-shared"]
                subprocess.run([compiler, *options, *SOURCES, "-o", FOLDER / "built"], check=True)

    def test_the_header_is_one_of_c_and_of_cxx(self):
        for language, standard in (("c", "c11"), ("c++", "c++11"), ("c++", "c++20")):
            source = FOLDER / "header"
            source.write_text("#include <identity.h>\nint main(void) { return identity_events((struct identity *)0); }\n")
            options = ["-x", language, f"-std={standard}", *WARNINGS, f"-I{LIBRARY}", "-fsyntax-only"]
            subprocess.run(["gcc", *options, source], check=True)

    def test_exactly_the_functions_of_the_map_and_of_the_header_are_exported(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(LIBRARY, f"{folder}/packaging/c")
            (pathlib.Path(folder) / "packaging/debian").mkdir()
            shutil.copy(ROOT / "packaging/debian/changelog", f"{folder}/packaging/debian")
            variables = [f"DESTDIR={folder}/root", "prefix=/usr", "CFLAGS=-O2 -Werror"]
            self.output("make", "--quiet", f"--directory={folder}/packaging/c", "install", *variables)
            built = f"{folder}/root/usr/lib/libidentity.so.0"
            symbols = self.output("nm", "-D", "--defined-only", built)
            dynamic = self.output("readelf", "-d", built)
            exported = set(re.findall(r" T (\S+)@@LIBIDENTITY_0", symbols))
            self.assertEqual(len(symbols.splitlines()), len(exported) + 1)  # and the version itself
            map, header = (LIBRARY / "identity.map").read_text(), (LIBRARY / "identity.h").read_text()
            self.assertEqual(exported, set(re.findall(r"^    (identity_\w+);", map, re.MULTILINE)))
            self.assertEqual(exported, set(re.findall(r"\b(identity_\w+)\([^)]*\);", header)))
            debian = (ROOT / "packaging/debian/libidentity0.symbols").read_text()
            self.assertEqual(exported, set(re.findall(r"^ (identity_\w+)@LIBIDENTITY_0 ", debian, re.MULTILINE)))
            self.assertIn("soname: [libidentity.so.0]", dynamic)
            self.assertEqual(re.findall(r"NEEDED.*\[(.*)\]", dynamic), ["libc.so.6"])
            self.check_installed(pathlib.Path(folder) / "root")

    def check_installed(self, root):
        """Compiles and links with pkg-config, as a program outside of the tree does."""
        folder = {"PKG_CONFIG_PATH": str(root / "usr/lib/pkgconfig"), "PKG_CONFIG_SYSROOT_DIR": str(root)}
        flags = self.output("pkg-config", "--cflags", "--libs", "libidentity", env=os.environ | folder).split()
        program = root / "client"
        subprocess.run(["gcc", ROOT / "packaging/examples/client.c", *flags, "-o", program], check=True)
        daemon = Daemon()
        self.addCleanup(daemon.close)
        linked = environment(daemon.socket) | {"LD_LIBRARY_PATH": str(root / "usr/lib")}
        subprocess.run([program, "ping"], check=True, env=linked)


class RequestTest(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.close)

    def test_every_function_with_the_real_daemon(self):
        for options in (ADDRESS, THREAD):
            run(self.daemon.socket, "requests", options=options)

    def test_a_hundred_threads_with_a_handle_each(self):
        for options in (ADDRESS, THREAD):
            run(self.daemon.socket, "threads", options=options)

    def test_the_example_of_the_manual(self):
        page = (ROOT / "packaging/man/identityd.3").read_text()
        shown = re.search(r'\.\\" BEGIN example\n\.Bd -literal[^\n]*\n(.*?)\.Ed\n', page, re.S)[1]
        source = FOLDER / "example.c"
        source.write_text(shown.replace("\\e", "\\").replace("\\-", "-").replace("\\&", ""))
        self.assertLessEqual(len(shown.splitlines()), 12)
        compiled("example", source)
        device = self.daemon.ask("get device")[0].split(" ")[1]
        self.assertEqual(run(self.daemon.socket, "example"), f"{device}\n")
        self.daemon.end()
        failed = subprocess.run(
            [compiled("example", source)], env=environment(self.daemon.socket), capture_output=True, text=True)
        self.assertEqual((failed.returncode, failed.stdout), (1, ""))
        self.assertIn("identityd", failed.stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
