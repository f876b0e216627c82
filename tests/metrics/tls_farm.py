"""A farm with keys on loopback, on the null target, and a caller of its pages."""
import contextlib
import http.client
import json
import os
import pathlib
import socket
import ssl
import subprocess

# The name of all daemons in their certificates.
DAEMON = "daemon.kiln.internal"


class Farm:
    """Started by entering, ended by leaving."""

    def __init__(self, kiln, folder, *options):
        self.kiln, self.folder, self.options = kiln, pathlib.Path(folder), options
        self.keys = self.folder / "keys"
        self.owner = None

    def __enter__(self):
        self.run("farm", "up", "--folder", self.folder, "--tls", "--device", "null", "--workers", "2", *self.options)
        # So far nobody else has keys.
        self.owner = next(path for path in self.keys.iterdir() if path.name not in ("authority", "daemons"))
        return self

    def __exit__(self, *_):
        with contextlib.suppress(RuntimeError):
            self.run("farm", "down", "--folder", self.folder)

    def run(self, *words):
        """The output of a command."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_")}
        words = [str(word) for word in words]
        done = subprocess.run([self.kiln, *words], text=True, capture_output=True, timeout=300, check=False, env=environment)
        if done.returncode != 0:
            raise RuntimeError(f"kiln {' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def status(self):
        return json.loads(self.run("farm", "status", "--folder", self.folder, "--json"))

    def process(self, name):
        return next(process for process in self.status()["processes"] if process["name"] == name)

    def pages(self):
        """HOST:PORT of each daemon's pages, by the daemon's name."""
        return {process["name"]: process["pages"] for process in self.status()["processes"]}

    def issue(self, name, role):
        """The folder of new keys."""
        self.run("keys", "issue", name, "--role", role, "--authority", self.keys)
        return self.keys / name

    def user(self):
        """Flags of a command that uses the farm as its owner."""
        return ["--scheduler", self.process("scheduler")["addresses"][0], "--keys", self.owner]

    def submit(self, size, trials):
        self.run("submit", "matmul", "--args", f"{size},{size},{size}", "--target", "null", "--trials", trials,
                 "--policy", "sketch.random", *self.user())


def get(address, path, trusted, keys=None, headers=None):
    """Status and text of a page. `trusted`: a folder of keys whose authority the daemon must have; `keys`: that of the
    caller, None for none."""
    host, port = address.rsplit(":", 1)
    context = ssl.create_default_context(cafile=str(trusted / "authority.pem"))
    if keys is not None:
        context.load_cert_chain(str(keys / "identity.pem"))
    connection = http.client.HTTPConnection(host, int(port), timeout=60)
    connection.sock = context.wrap_socket(socket.create_connection((host, int(port)), timeout=60), server_hostname=DAEMON)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read().decode()
