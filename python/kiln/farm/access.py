"""What a client shows to a farm: the keys of its user, the farm's secret, or nothing."""

from __future__ import annotations

import os
import socket
import ssl
import stat
import threading
import time
from collections.abc import Sequence
from typing import Any

import grpc

from kiln import errors

_SECRET_KEY = "kiln-secret"
# The name of every daemon in its certificate (base/keys/identity.h): the client asks for it,
# whatever the address is, so nobody but a daemon of the farm is believed.
_DAEMON_HOST = "daemon.kiln.internal"
_PROBE_S = 5.0
# The files of a folder of keys. Key and certificate are one file, so that a renewal replaces both
# at once.
_IDENTITY, _AUTHORITY, _REVOKED = "identity.pem", "authority.pem", "revoked.pem"
# The files are looked at when somebody asks, at most this often.
LOOK_EVERY_S = 1.0
# OpenSSL's X509_V_ERR_CERT_REVOKED.
_REVOKED_CODE = 23


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
    """Keys (a folder), a secret (a file), or nothing (""). KilnError: they cannot be read.

    Any thread may call it.
    """

    def __init__(self, path: str | os.PathLike[str] = "") -> None:
        self.path = os.fspath(path)
        # With keys the farm knows the user by the certificate.
        self.has_keys = os.path.isdir(self.path)
        self._secret = read_secret(self.path) if self.path and not self.has_keys else ""
        self._lock = threading.Lock()
        self._next_look_s = time.monotonic() + LOOK_EVERY_S
        self._stamps = self._look()
        self._credentials = self._read_keys() if self.has_keys else None
        # Counts the states of the folder of keys that were read.
        self._state = 0

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

    def state(self) -> int:
        """A number that changes when the keys have changed; a channel shows those of its time.

        Files that do not belong together, because they are being copied, are read again later.
        """
        with self._lock:
            if not self.has_keys or time.monotonic() < self._next_look_s:
                return self._state
            self._next_look_s = time.monotonic() + LOOK_EVERY_S
            stamps = self._look()
            if stamps == self._stamps:
                return self._state
            try:
                self._credentials = self._read_keys()
            except errors.KilnError:
                return self._state
            self._stamps = stamps
            self._state += 1
            return self._state

    def check_server(self, address: str) -> bool:
        """Whether a server is there and has been judged by the keys; without keys it is not.

        UnauthenticatedError: it is no daemon of the farm, its certificate is revoked or has ended,
        or it asks for keys that are not given.
        """
        host, _, port = address.rpartition(":")
        where = (host.strip("[]"), int(port))
        if not self.has_keys:
            if not _shows_a_certificate(where):
                return False
            raise errors.UnauthenticatedError(
                f"the daemon at {address} asks for a certificate of its farm, and none was shown: "
                "give keys=FOLDER or KILN_KEYS, with a folder that `kiln keys issue NAME --role "
                "ROLE` makes where the farm's authority is"
            )
        authority = os.path.join(self.path, _AUTHORITY)
        context = self._context()
        try:
            with socket.create_connection(where, timeout=_PROBE_S) as plain:
                context.wrap_socket(plain, server_hostname=_DAEMON_HOST).close()
        except ssl.SSLCertVerificationError as error:
            if error.verify_code == _REVOKED_CODE:
                raise errors.UnauthenticatedError(
                    f"the certificate of the server at {address} was revoked, as "
                    f"{os.path.join(self.path, _REVOKED)} says; expected a daemon with a "
                    "certificate that holds: `kiln keys issue NAME --role work` makes one where "
                    "the farm's authority is"
                ) from error
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
            return False
        return True

    def _context(self) -> ssl.SSLContext:
        """Believes daemons of the farm whose certificates are not revoked."""
        authority = _read_part(self.path, _AUTHORITY).decode("ascii", "replace")
        _read_part(self.path, _REVOKED)
        revoked = os.path.join(self.path, _REVOKED)
        try:
            context = ssl.create_default_context(cadata=authority)
            context.load_verify_locations(cafile=revoked)
        except (ssl.SSLError, ValueError) as error:
            raise errors.KilnError(
                f"{os.path.join(self.path, _AUTHORITY)} or {revoked} cannot be read ({error}); copy "
                "the folder anew from where the farm's authority is"
            ) from error
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        return context

    def _look(self) -> list[tuple[int, int, int] | None]:
        """Tells the files from those that stood there before."""
        stamps: list[tuple[int, int, int] | None] = []
        for name in (_IDENTITY, _AUTHORITY, _REVOKED) if self.has_keys else ():
            try:
                info = os.stat(os.path.join(self.path, name))
                stamps.append((info.st_ino, info.st_size, info.st_mtime_ns))
            except OSError:
                stamps.append(None)
        return stamps

    def _read_keys(self) -> grpc.ChannelCredentials:
        identity = _read_part(self.path, _IDENTITY, private=True)
        context = self._context()
        path = os.path.join(self.path, _IDENTITY)
        try:
            context.load_cert_chain(path)
        except ssl.SSLError as error:
            raise errors.KilnError(
                f"{path} holds no certificate with its private key ({error.reason}); copy the file "
                "anew from where the farm's authority is"
            ) from error
        authority = _read_part(self.path, _AUTHORITY)
        return grpc.ssl_channel_credentials(authority, identity, identity)


def _shows_a_certificate(where: tuple[str, int]) -> bool:
    try:
        return bool(ssl.get_server_certificate(where, timeout=_PROBE_S))
    except OSError:
        return False
