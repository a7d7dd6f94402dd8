"""What goes wrong, as exceptions. The text is the one line that the command line prints."""


class Error(Exception):
    """Any failure of fleetfit; `code` names its kind."""

    code = "internal"


class InvalidInput(Error, ValueError):
    """A file, argument or field that breaks its format."""

    code = "invalid_input"


class Unsupported(Error):
    """Valid, but nothing here can do it."""

    code = "unsupported"


class NotFound(Error, LookupError):
    """A name or file that does not exist."""

    code = "not_found"


class InputOutput(Error):
    """The system refused to read, write or start something."""

    code = "io"


class DeviceFailed(Error):
    """A device or runtime died, hung or spoke nonsense."""

    code = "device_failed"


class Unstable(Error):
    """A measurement that did not settle."""

    code = "unstable"


class Cancelled(Error):
    """The user asked to stop."""

    code = "cancelled"


_KINDS = {kind.code: kind for kind in (Error, *Error.__subclasses__())}


def from_code(code: str, message: str) -> Error:
    """The exception for one of the library's error codes."""
    return _KINDS.get(code, Error)(message)
