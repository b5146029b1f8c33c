"""Hosts on one machine: network namespaces with addresses of their own, joined by a bridge.

Nothing of the machine's own network is touched: the bridge is in a namespace as well.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Host:
    """A namespace with an interface `eth0`."""

    name: str
    address: str

    def start(
        self, command: Sequence[str], log: Path, **environment: str
    ) -> subprocess.Popen[bytes]:
        with open(log, "ab") as file:
            return subprocess.Popen(
                ["ip", "netns", "exec", self.name, *command],
                env={**os.environ, "GLOO_SOCKET_IFNAME": "eth0", **environment},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
            )

    def kill(self) -> None:
        """End every process of this host at once, as a power cut does."""
        for _ in range(3):  # one may just be starting another
            for process in _ip("netns", "pids", self.name).split():
                with suppress(ProcessLookupError):
                    os.kill(int(process), signal.SIGKILL)


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """So many hosts; an OSError where this machine does not allow it."""
    if shutil.which("ip") is None:
        raise OSError("no ip command")
    bridge = f"bothends-{os.getpid()}"
    found = [Host(f"{bridge}-{number}", f"10.77.0.{number}") for number in range(1, count + 1)]
    try:
        _ip("netns", "add", bridge)
        _ip("-n", bridge, "link", "add", "br0", "type", "bridge")
        _ip("-n", bridge, "link", "set", "br0", "up")
        for number, host in enumerate(found):
            _ip("netns", "add", host.name)
            ends = ("netns", bridge, "type", "veth", "peer", "name", "eth0", "netns", host.name)
            _ip("link", "add", f"v{number}", *ends)
            _ip("-n", bridge, "link", "set", f"v{number}", "master", "br0", "up")
            _ip("-n", host.name, "address", "add", f"{host.address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", host.name, "link", "set", device, "up")
        yield found
    finally:
        for name in (*(host.name for host in found), bridge):
            with suppress(OSError):
                Host(name, "").kill()
                _ip("netns", "delete", name)


def _ip(*arguments: str) -> str:
    result = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    if result.returncode:
        raise OSError(result.stderr.strip())
    return result.stdout
