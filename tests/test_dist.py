"""What `make dist` builds: installed into a clean prefix, it translates."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest

from bothends import Translator, __version__

ROOT = Path(__file__).parents[1]
LINE = "Where is the nearest station?"


def run(*command: str, directory: Path, **environment: str) -> str:
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, **environment},
        input=f"{LINE}\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_wheel_translates_in_a_clean_prefix(tmp_path: Path) -> None:
    """Built from the sdist, so that both are complete; without the native engine, which takes a
    minute to compile and has tests of its own."""
    python, output = sys.executable, tmp_path / "dist"
    run(
        python, "-m", "build", "--no-isolation", "--outdir", str(output),
        directory=ROOT, BOTHENDS_NATIVE="0",
    )  # fmt: skip
    (sdist,), (wheel,) = output.glob("*.tar.gz"), output.glob("*.whl")
    assert sdist.name == f"bothends-{__version__}.tar.gz"
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    for name in ("LICENSE", "CITATION.cff", "tests/conftest.py", "docs/orders.md", "Makefile"):
        assert name in names
    folder = ROOT / "src" / "bothends" / "engines" / "native" / "csrc"
    sources = {path.relative_to(ROOT).as_posix() for path in folder.iterdir() if path.is_file()}
    assert len(sources) > 5
    assert sources <= names

    prefix = tmp_path / "prefix"
    run(
        python, "-m", "pip", "install", "--no-deps", "--no-index", "--ignore-installed",
        "--prefix", str(prefix), str(wheel), directory=tmp_path,
    )  # fmt: skip
    scheme = {"base": str(prefix), "platbase": str(prefix)}
    packages = sysconfig.get_path("platlib", "posix_prefix", scheme)
    (installed,) = {packages, sysconfig.get_path("purelib", "posix_prefix", scheme)}
    where = run(
        python, "-c", "import bothends; print(bothends.__file__)",
        directory=tmp_path, PYTHONPATH=installed,
    )  # fmt: skip
    assert Path(where.strip()).is_relative_to(prefix)
    assert not list(prefix.rglob("*.cc")), "a wheel needs no sources"
    command = str(prefix / "bin" / "bothends")
    found = run(command, "translate", directory=tmp_path, PYTHONPATH=installed)
    assert found.strip() == Translator.load().translate([LINE])[0].text
    assert found.strip()
    tour = run(command, "demo", "--rounds", "1", directory=tmp_path, PYTHONPATH=installed)
    assert "step 1" in tour
