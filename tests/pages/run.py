"""Types the commands of pages on machines that have nothing but Debian's base system and `kiln`.

usage: run.py TREE ROOT FOLDER SETUP...

deploy/check_pages.sh makes the places and runs this. ROOT is a root of Debian with the program in
/usr/bin; FOLDER is for Slurm. Prints each command with its seconds. Exit status 1: a command failed.
"""
import os
import pathlib
import re
import shutil
import sys
import time

from commands import commands, section
from hosts import Cable, Shell, Timeout, run
from setups import NOT_TYPED, SETUPS, Setup

LIMIT_S = 600
# A person needs so long for the next command; a daemon in the background is there by then.
PAUSE_S = 10
# The root of a shell becomes that of its mount namespace: a process whose root is another one may
# make no user namespaces.
ENTER_ROOT = """
mount --bind "$1" "$1"
mount -t proc proc "$1/proc"
cd "$1"
pivot_root . .
umount -l .
cd "/home/alice/$2"
exec setpriv --reuid 1000 --regid 1000 --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \\
  env -i HOME="/home/alice/$2" USER=alice PATH=/usr/bin:/bin LC_ALL=C.UTF-8 bash --norc --noprofile"""


class Place:
    """The shells of a set-up's hosts, of which each has a home of its own. All see the files of one root."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._shells: dict[str, Shell] = {}
        self._cable: Cable | None = None
        shutil.rmtree(f"{root}/home", ignore_errors=True)
        os.makedirs(f"{root}/home/alice")

    def shell(self, host: str, first: str) -> Shell:
        if host not in self._shells:
            enter = ["unshare", "--mount", "sh", "-euc", ENTER_ROOT, "sh", self._root, host]
            if host != first:
                self._cable = self._cable or Cable(host)
                enter = [*self._cable.enter, *enter]
            os.makedirs(f"{self._root}/home/alice/{host}")
            run("chown", "-R", "1000:1000", f"{self._root}/home/alice")
            self._shells[host] = Shell(enter)
        return self._shells[host]

    def close(self) -> None:
        for shell in self._shells.values():
            shell.type("kiln farm down >/dev/null", LIMIT_S)
            shell.close()
        if self._cable:
            self._cable.close()


class SlurmPlace:
    """A login node with Slurm, and a person there. Both are this user of this machine."""

    def __init__(self, tree: str, folder: str) -> None:
        sys.path.insert(0, f"{tree}/tests/slurm")
        from cluster import Cluster
        self._cluster = Cluster(pathlib.Path(folder) / "slurm")
        self._cluster.start()
        self._shell = Shell(["bash", "--norc", "--noprofile"])
        self._shell.type(f"cd {folder}", LIMIT_S)

    def shell(self, _host: str, _first: str) -> Shell:
        return self._shell

    def close(self) -> None:
        """The namespace of processes ends with this program, and all daemons with it."""
        self._shell.close()


def typed(setup: Setup, text: str) -> str:
    for pattern, replacement in setup.instead:
        text = re.sub(pattern, replacement, text)
    return text


def check(setup: Setup, page: str, place) -> bool:
    """Types the page. Prints a line for each command, and what a failed one printed."""
    begin, done = time.monotonic(), 0
    for host, text in setup.before:
        place.shell(host, setup.host).type(text, LIMIT_S)
    all_commands = commands(section(page, setup.section))
    for command in all_commands:
        text = typed(setup, command.text)
        if text == NOT_TYPED:
            print(f"     -    {setup.page}:{command.line}: not typed: {command.text}")
            continue
        start = time.monotonic()
        try:
            status, said = place.shell(command.host or setup.host, setup.host).type(text, LIMIT_S)
        except Timeout as timeout:
            status, said = -1, f"{timeout}\n(no end after {LIMIT_S} s)"
        if text.endswith("&"):
            time.sleep(PAUSE_S)
        print(f"{time.monotonic() - start:7.1f} s {setup.page}:{command.line}: {command.host}$ {text}", flush=True)
        if os.environ.get("KILN_PAGES_VERBOSE"):
            print(said)
        if status != 0:
            print(f"{said}\nFAILED: {setup.page}:{command.line}: {command.text}: exit status {status}")
            return False
        done += 1
    print(f"{setup.name}: {len(all_commands)} commands, {done} typed, {(time.monotonic() - begin) / 60:.1f} minutes")
    return True


def main() -> int:
    tree, root, folder, *names = sys.argv[1:]
    failed = False
    for setup in SETUPS:
        if setup.name not in names:
            continue
        place = SlurmPlace(tree, folder) if setup.name == "slurm" else Place(root)
        try:
            failed |= not check(setup, (pathlib.Path(tree) / setup.page).read_text(), place)
        finally:
            place.close()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
