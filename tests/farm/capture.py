"""Keeps all that goes over a network interface, until it is told to stop. No tcpdump is needed.

    python3 capture.py INTERFACE FILE      prints "capturing" once it does; ends on SIGTERM
    python3 capture.py --find FILE WORD... exit status 0 and a line for each WORD that FILE holds
"""

from __future__ import annotations

import pathlib
import signal
import socket
import sys

_ALL_PROTOCOLS = 0x0003


def capture(interface: str, path: str) -> None:
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    packets.bind((interface, 0))
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with open(path, "wb", buffering=0) as file:
        print("capturing", flush=True)
        while True:
            file.write(packets.recv(1 << 17))


def find(path: str, words: list[str]) -> int:
    """Prints the words that the file holds. A word that two packets share is not found."""
    text = pathlib.Path(path).read_bytes()
    found = [word for word in words if word.encode() in text]
    said = f"{len(text)} bytes were captured, with {len(found)} of {len(words)} words"
    print(said, *found, sep="\n  ")
    return 0 if found else 1


if __name__ == "__main__":
    if sys.argv[1] == "--find":
        sys.exit(find(sys.argv[2], sys.argv[3:]))
    capture(sys.argv[1], sys.argv[2])
