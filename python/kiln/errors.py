"""What goes wrong in libkiln_runtime."""


class KilnError(RuntimeError):
    """One sentence that says what was found and what was expected."""
