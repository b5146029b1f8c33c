"""Builds the native engine if there is a C++ compiler; everything else is in pyproject.toml.

Without a compiler, or without pybind11, the installation succeeds and ONNX Runtime serves:
`bothends --version` says which of the two it is. What an old compiler or its assembler lacks is
left out of the engine. `BOTHENDS_SANITIZE=1` builds the engine with the
address and undefined behaviour sanitizers, and `BOTHENDS_NATIVE=0` leaves it out.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError

SOURCES = Path("src/bothends/engines/native/csrc")
FLAGS = [
    "-std=c++17",
    "-O3",
    # Python's own flags ask for symbols of a debugger: nineteen twentieths of the extension.
    "-g0",
    "-fvisibility=hidden",
    "-pthread",
    # A product and a sum are rounded one after the other everywhere, in vectors and in their tails.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-Wall",
    "-Wextra",
    # GCC's own headers of AVX-512 leave registers undefined on purpose.
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
]
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-g", "-O1"]

#: A few lines for each instruction set that only newer compilers have, by the macro that says that
#: this one does not.
NEW_INSTRUCTIONS = {
    "BOTHENDS_WITHOUT_AVXVNNI": """
__attribute__((target("avx2,avxvnni"))) __m256i multiply(__m256i a, __m256i b) {
  return _mm256_dpbusd_avx_epi32(a, a, b);
}""",
    "BOTHENDS_WITHOUT_AMX": """
__attribute__((target("amx-tile,amx-int8"))) void multiply(const void* tiles) {
  _tile_loadconfig(tiles);
  _tile_dpbusd(0, 1, 2);
  _tile_release();
}""",
}


class BuildWithWhatThereIs(build_ext):
    """Tries the compiler and its assembler, so that one set does not cost the whole engine."""

    def build_extension(self, extension: Extension) -> None:
        for macro, lines in NEW_INSTRUCTIONS.items():
            if not self._compiles(lines):
                print(f"the lines above are not understood by this compiler: built with {macro}")
                extension.define_macros.append((macro, "1"))
        super().build_extension(extension)

    def _compiles(self, lines: str) -> bool:
        with TemporaryDirectory() as scratch:
            source = Path(scratch, "instructions.cc")
            guarded = f"#if defined(__x86_64__)\n#include <immintrin.h>\n{lines}\n#endif\n"
            source.write_text(guarded, encoding="utf-8")
            try:
                self.compiler.compile([str(source)], output_dir=scratch)
            except CompileError:
                return False
        return True


def extensions() -> list[Extension]:
    if os.environ.get("BOTHENDS_NATIVE") == "0":
        return []
    try:
        import pybind11
    except ImportError:
        return []
    sanitize = SANITIZE if os.environ.get("BOTHENDS_SANITIZE") else []
    return [
        Extension(
            "bothends.engines.native._native",
            sources=sorted(str(path) for path in SOURCES.glob("*.cc")),
            depends=sorted(str(path) for path in (*SOURCES.glob("*.h"), *SOURCES.glob("*.inl"))),
            include_dirs=[pybind11.get_include()],
            extra_compile_args=FLAGS + sanitize,
            extra_link_args=["-pthread", *sanitize],
            language="c++",
            optional=True,  # a compiler that is missing or fails is a warning
        )
    ]


setup(
    ext_modules=extensions(),
    cmdclass={"build_ext": BuildWithWhatThereIs},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
