"""The console script, and `python -m bothends`: an interrupt ends it quietly from the start.

Nothing is imported before an interrupt is taken care of: the packages behind the command line take
a good part of a second to load, in which Ctrl-C would end in a traceback of whatever they were at.
What comes before this file is Python's own start, a few hundredths of a second.
"""

from __future__ import annotations

# The C module behind `signal`, which would import a dozen others first.
import _signal as signal  # type: ignore[import-not-found]
import os
import sys

#: What a shell says of a process that Ctrl-C has ended.
INTERRUPTED = 130


def main() -> None:
    """Run the command in `sys.argv`, and exit with its status."""
    # Left alone where it is ignored, as in a job that the shell has put in the background.
    interruptible = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if interruptible:
        # Not an exception: a package that is half imported might catch it and call it its own.
        signal.signal(signal.SIGINT, _leave)
    try:
        from bothends.quick import plain_translation

        if translation := plain_translation(sys.argv[1:]):
            import bothends.translating.request  # noqa: F401  (all that takes its time)
            from bothends.console import run_command
        else:
            # A program needs none of pydantic's plugins, and looking for them takes a while.
            os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
            from bothends.cli import run
        if interruptible:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        status = run_command(translation, sys.argv[1:]) if translation else run()
    except KeyboardInterrupt:  # between the lines, before and after what the command takes care of
        status = INTERRUPTED
    finally:
        if interruptible:  # Python's own end waits for threads, and would complain
            signal.signal(signal.SIGINT, _leave)
    sys.exit(status)


def _leave(*_: object) -> None:
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
