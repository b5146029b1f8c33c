"""Installing with and without a C++ compiler: both succeed, and both translate."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from platform import machine

import pytest

ROOT = Path(__file__).parents[1]
NO_COMPILER = {"CC": "/nonexistent/cc", "CXX": "/nonexistent/c++"}

if not (ROOT / "setup.py").is_file():
    pytest.skip("these tests need the source tree", allow_module_level=True)


def run(*command: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        list(map(str, command)),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.parametrize("environment", [NO_COMPILER, {"BOTHENDS_NATIVE": "0"}], ids=str)
def test_a_build_without_a_compiler_succeeds(environment: dict[str, str], tmp_path: Path) -> None:
    build = ("build_ext", "--build-lib", tmp_path / "lib", "--build-temp", tmp_path / "objects")
    run(sys.executable, "setup.py", "--quiet", *build, cwd=ROOT, **environment)
    assert not list(tmp_path.rglob("*.so"))


OLD_ASSEMBLER = """#!/bin/sh
# Refuses AVX-VNNI and AMX wherever they are, and does not optimise, which takes long.
case " $* " in *" -c "*) ;; *) exec g++ "$@" ;; esac
g++ "$@" -O0 -save-temps=obj || exit 1
while [ "$1" != -o ]; do shift; done
grep -qE 'tdpbusd|[{]vex[}] vpdpbusd' "${2%.o}.s" || exit 0
rm "$2"
echo "Error: no such instruction" >&2
exit 1
"""


@pytest.mark.slow
@pytest.mark.skipif(machine() != "x86_64", reason="other processors have neither")
def test_an_old_compiler_builds_the_rest(tmp_path: Path) -> None:
    if shutil.which("g++") is None:
        pytest.skip("there is no compiler here")
    compiler = tmp_path / "g++-old"
    compiler.write_text(OLD_ASSEMBLER)
    compiler.chmod(0o755)
    build = ("build_ext", "--build-lib", tmp_path / "lib", "--build-temp", tmp_path / "objects")
    both = {"CC": str(compiler), "CXX": str(compiler)}
    run(sys.executable, "setup.py", "--quiet", *build, cwd=ROOT, **both)
    (built,) = tmp_path.rglob("*.so")
    code = "import _native; print(*_native.instruction_sets())"
    found = run(sys.executable, "-c", code, cwd=built.parent).stdout.split()
    assert found[0] == "portable"
    assert "amx" not in found


@pytest.fixture
def source_tree(tmp_path: Path) -> Path:
    """A copy, because an installation writes into the tree that it is made from."""
    tree = tmp_path / "tree"
    ignored = shutil.ignore_patterns("*.so", "__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", tree / "src", ignore=ignored)
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE", "MANIFEST.in"):
        shutil.copy(ROOT / name, tree / name)
    return tree


@pytest.mark.slow
@pytest.mark.parametrize(
    ("environment", "engine"), [(NO_COMPILER, "onnx"), ({}, "native")], ids=["without", "with"]
)
def test_an_installation_translates(
    environment: dict[str, str], engine: str, source_tree: Path, tmp_path: Path
) -> None:
    if engine == "native" and shutil.which(os.environ.get("CXX", "g++")) is None:
        pytest.skip("there is no compiler here")
    prefix = tmp_path / "prefix"
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps")
    run(*pip, "--target", prefix, source_tree, cwd=tmp_path, **environment)
    code = (
        "from bothends import Translator\n"
        "import bothends\n"
        "translator = Translator.load()\n"
        "print(bothends.__file__)\n"
        "print(translator.engine_name, translator.translate(['A dog runs.'])[0].text)\n"
    )
    where, translated = run(
        sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(prefix)
    ).stdout.splitlines()
    assert where.startswith(str(prefix))
    assert translated.startswith(f"{engine} Um cão")
    for built in prefix.rglob("_native*.so"):  # symbols of a debugger: nineteen twentieths of it
        assert b".debug_info" not in built.read_bytes()
    version = run(
        sys.executable, "-m", "bothends", "--version", cwd=tmp_path, PYTHONPATH=str(prefix)
    )
    assert ("not built" in version.stdout) == (engine == "onnx")
