"""Test programs in C, compiled with the library and a sanitizer."""

import atexit, os, pathlib, shutil, subprocess, tempfile

from daemons import PATIENCE, ROOT

LIBRARY = ROOT / "packaging/c"
TESTS = ROOT / "Tests/CLibraryTests"
SOURCES = sorted(str(path) for path in LIBRARY.glob("*.c"))
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Werror"]
COMMON = ["-std=c11", "-g", "-O1", "-pthread", *WARNINGS, f"-I{LIBRARY}"]
ADDRESS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
THREAD = ["-fsanitize=thread"]
COMPILERS = [name for name in ("gcc", "clang") if shutil.which(name)]
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="library-programs-"))
atexit.register(shutil.rmtree, FOLDER)


def compiled(name, source=None, options=ADDRESS):
    """Compiles a test program with the library, once, and returns its path."""
    program = FOLDER / (name + ("-thread" if options is THREAD else ""))
    if not program.exists():
        source = str(source or TESTS / f"{name}.c")
        subprocess.run(["gcc", *COMMON, *options, source, *SOURCES, "-o", program], check=True)
    return program


def environment(path):
    return os.environ | {"IDENTITYD_SOCKET": path, "UBSAN_OPTIONS": "print_stacktrace=1"}


def run(path, name, *words, options=ADDRESS):
    """Runs a test program, which must succeed, and returns its output. The sanitizers end it with an error."""
    # ThreadSanitizer of GCC 12 does not know the layout of addresses of recent kernels.
    command = ["setarch", "--addr-no-randomize"] if options is THREAD else []
    command += [compiled(name, options=options), *words]
    outcome = subprocess.run(command, env=environment(path), capture_output=True, text=True, timeout=3 * PATIENCE)
    if outcome.returncode != 0:
        raise AssertionError(f"{name} {words}: {outcome.returncode}\n{outcome.stdout}{outcome.stderr}")
    return outcome.stdout
