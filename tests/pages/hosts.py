"""Machines of a check: shells that live from one command to the next, each in a network of its own."""
import os
import select
import subprocess
import time

END = "end-of-command"


class Timeout(Exception):
    pass


class Shell:
    """A bash to which commands are typed. It ends with `close`; what it has started does not."""

    def __init__(self, start: list[str]) -> None:
        self._bash = subprocess.Popen(start, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def type(self, command: str, timeout_s: float) -> tuple[int, str]:
        """Returns the exit status of a command, and what it printed. A command reads nothing."""
        self._bash.stdin.write(f"{{ {command}\n}} </dev/null\nprintf '\\n{END} %d\\n' $?\n".encode())
        self._bash.stdin.flush()
        said, end = b"", time.monotonic() + timeout_s
        while f"\n{END} ".encode() not in said or not said.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._bash.stdout], [], [], left)[0]:
                raise Timeout(said.decode(errors="replace"))
            more = os.read(self._bash.stdout.fileno(), 65536)
            if not more:
                return 255, said.decode(errors="replace")
            said += more
        text, _, status = said.decode(errors="replace").rpartition(f"\n{END} ")
        return int(status.split()[0]), text

    def close(self) -> None:
        self._bash.stdin.close()
        self._bash.wait()


def run(*command: str) -> None:
    subprocess.run(command, check=True)


class Cable:
    """A second network namespace, with a cable to this one: this end is 10.77.0.1, the other 10.77.0.2."""

    def __init__(self, host: str) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "--uts", "sh", "-c", f"hostname {host}; ip link set lo up; echo; exec sleep infinity"],
            stdout=subprocess.PIPE)
        self._holder.stdout.readline()
        run("ip", "link", "add", "cable1", "type", "veth", "peer", "name", "cable2")
        run("ip", "link", "set", "cable2", "netns", str(self._holder.pid))
        run("ip", "address", "add", "10.77.0.1/24", "dev", "cable1")
        run("ip", "link", "set", "cable1", "up")
        run(*self.enter, "ip", "address", "add", "10.77.0.2/24", "dev", "cable2")
        run(*self.enter, "ip", "link", "set", "cable2", "up")

    @property
    def enter(self) -> list[str]:
        """The words before a command that begins in the other namespace."""
        return ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net", f"--uts=/proc/{self._holder.pid}/ns/uts"]

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()
