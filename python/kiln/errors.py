"""What goes wrong in Kiln. Each error is one sentence that says what was found and expected."""

from __future__ import annotations


class KilnError(RuntimeError):
    """One sentence that says what was found and what was expected. The base of all errors here."""


class InvalidArgumentError(KilnError, ValueError):
    """A text, a shape, an option or a name that does not fit."""


class NotFoundError(KilnError, LookupError):
    """A job, record, model or worker that is not there."""


class FailedPreconditionError(KilnError):
    """The call does not fit the present state: no device, a job that has ended, a newer file."""


class UnavailableError(KilnError):
    """No answer: the farm, or a part of it, is not there. The same call may succeed later."""


class DeadlineExceededError(KilnError):
    """The call took longer than it may."""


class ResourceExhaustedError(KilnError):
    """A limit of the farm is reached: jobs of a user, streams at once, the size of a message."""


class UnauthenticatedError(KilnError):
    """The farm has another secret, or asks for keys that hold; the call had none, or others."""


class PermissionDeniedError(KilnError):
    """The role of the caller's keys does not allow the call, or the job is another user's."""


class CancelledError(KilnError):
    """The caller or the farm ended the call."""
