"""Builds the native engine if there is a C++ compiler; everything else is in pyproject.toml.

Without a compiler, or without pybind11, the installation succeeds and ONNX Runtime serves:
`bothends --version` says which of the two it is. `BOTHENDS_SANITIZE=1` builds the engine with the
address and undefined behaviour sanitizers, and `BOTHENDS_NATIVE=0` leaves it out.
"""

from __future__ import annotations

import os
from pathlib import Path

from setuptools import Extension, setup

SOURCES = Path("src/bothends/engines/native/csrc")
FLAGS = [
    "-std=c++17",
    "-O3",
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
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
