"""What a client shows to a farm: the keys of its user, the farm's secret, or nothing."""

from __future__ import annotations

import os
import socket
import ssl
import stat
from collections.abc import Sequence
from typing import Any

import grpc

from kiln import errors

_SECRET_KEY = "kiln-secret"
# The name of every daemon in its certificate (base/keys/identity.h): the client asks for it,
# whatever the address is, so nobody but a daemon of the farm is believed.
_DAEMON_HOST = "daemon.kiln.internal"
_PROBE_S = 5.0


def read_secret(path: str) -> str:
    """The first line of the file of a farm's secret.

    FailedPreconditionError: the file's mode gives any right to its group or to others.
    """
    try:
        with open(path, encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.readline(4096).strip()
    except (OSError, UnicodeDecodeError) as error:
        raise errors.KilnError(f"cannot read the secret in {path}: {error}") from error
    if stat.S_IMODE(mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise errors.FailedPreconditionError(
            f"the file of the secret, {path}, has mode {stat.S_IMODE(mode):04o}, expected one that "
            f"gives nothing to its group and others: `chmod 600 {path}`"
        )
    if not 16 <= len(text) <= 1024 or not all(" " < c <= "~" for c in text):
        raise errors.FailedPreconditionError(
            f"the secret in {path} has {len(text)} characters, expected 16 to 1024 printable ones "
            f"without spaces; make one with `(umask 77; openssl rand -hex 32 > {path})`"
        )
    return text


def _read_part(folder: str, name: str, private: bool = False) -> bytes:
    """A file of a folder of keys. Of a private one the group and others must have no right."""
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(1 << 20)
    except OSError as error:
        raise errors.KilnError(
            f"cannot read {path}: {error.strerror}; expected a folder of keys, as `kiln keys issue "
            "NAME --role ROLE` makes one where the farm's authority is"
        ) from error
    if private and stat.S_IMODE(mode) & (stat.S_IRWXG | stat.S_IRWXO):
        raise errors.FailedPreconditionError(
            f"the private key in {path} has mode {stat.S_IMODE(mode):04o}, expected one that gives "
            f"nothing to its group and others: `chmod 600 {path}`"
        )
    return text


class Access:
    """Keys (a folder), a secret (a file), or nothing (""). KilnError: they cannot be read."""

    def __init__(self, path: str | os.PathLike[str] = "") -> None:
        self.path = os.fspath(path)
        # With keys the farm knows the user by the certificate.
        self.has_keys = os.path.isdir(self.path)
        self._secret = read_secret(self.path) if self.path and not self.has_keys else ""
        self._credentials = self._read_keys() if self.has_keys else None

    @classmethod
    def of_environment(cls) -> Access:
        """That of KILN_KEYS, or of KILN_SECRET_FILE."""
        folder = os.environ.get("KILN_KEYS", "")
        if folder and not os.path.isdir(folder):
            raise errors.InvalidArgumentError(
                f"KILN_KEYS is {folder}, which is no folder; expected one that `kiln keys issue "
                "NAME --role ROLE` makes"
            )
        return cls(folder or os.environ.get("KILN_SECRET_FILE", ""))

    @property
    def metadata(self) -> tuple[tuple[str, str], ...]:
        """What goes with each call."""
        return ((_SECRET_KEY, self._secret),) if self._secret else ()

    def environment(self) -> dict[str, str]:
        """The variables that name this access for the program."""
        if not self.path:
            return {}
        return {"KILN_KEYS" if self.has_keys else "KILN_SECRET_FILE": os.path.abspath(self.path)}

    def channel(self, address: str, options: Sequence[tuple[str, Any]]) -> grpc.Channel:
        """A channel to a daemon; the first call connects."""
        if self._credentials is None:
            return grpc.insecure_channel(address, options=options)
        name = ("grpc.ssl_target_name_override", _DAEMON_HOST)
        return grpc.secure_channel(address, self._credentials, options=[*options, name])

    def check_server(self, address: str) -> None:
        """UnauthenticatedError: a server that gives no answer is there, and keys are the reason."""
        host, _, port = address.rpartition(":")
        where = (host.strip("[]"), int(port))
        if not self.has_keys:
            if not _shows_a_certificate(where):
                return
            raise errors.UnauthenticatedError(
                f"the daemon at {address} asks for a certificate of its farm, and none was shown: "
                "give keys=FOLDER or KILN_KEYS, with a folder that `kiln keys issue NAME --role "
                "ROLE` makes where the farm's authority is"
            )
        authority = os.path.join(self.path, "authority.pem")
        try:
            context = ssl.create_default_context(cafile=authority)
            with socket.create_connection(where, timeout=_PROBE_S) as plain:
                context.wrap_socket(plain, server_hostname=_DAEMON_HOST).close()
        except ssl.SSLCertVerificationError as error:
            raise errors.UnauthenticatedError(
                f"the server at {address} has no certificate of a daemon of this farm "
                f"({error.verify_message}), expected one of the authority in {authority}; give the "
                "keys of the farm that the server belongs to"
            ) from error
        except ssl.SSLError as error:
            raise errors.UnauthenticatedError(
                f"the server at {address} makes no connection of TLS ({error.reason}), which keys "
                "ask for; expected a daemon that was started with --keys"
            ) from error
        except OSError:
            return

    def _read_keys(self) -> grpc.ChannelCredentials:
        # Key and certificate are one file, so that a renewal replaces both at once.
        identity = _read_part(self.path, "identity.pem", private=True)
        authority = _read_part(self.path, "authority.pem")
        return grpc.ssl_channel_credentials(authority, identity, identity)


def _shows_a_certificate(where: tuple[str, int]) -> bool:
    try:
        return bool(ssl.get_server_certificate(where, timeout=_PROBE_S))
    except OSError:
        return False
