"""The errors of servers, their clients, columns and spools; the others are in errors.py."""

from __future__ import annotations

from .errors import Corrupt, Error, ProtocolError, Timeout, VersionMismatch


class ServerTimeout(Timeout, code=-860):
    """The server did not answer in time."""


class ControlProtocolError(ProtocolError, code=-861):
    """A control frame was malformed or came at the wrong time."""


class ControlVersionMismatch(VersionMismatch, code=-862):
    """The two sides speak different versions of the control protocol."""


class UnknownOperation(Error, code=-863):
    """The server does not know the operation."""


class NoSuchStream(Error, LookupError, code=-864):
    """The server has no stream of that name."""


class RangeNotAvailable(Error, LookupError, code=-865):
    """The server's log does not have the range."""


class AuthenticationRequired(Error, code=-866):
    """The server asks for a secret."""


class AuthenticationFailed(Error, code=-867):
    """The secrets of the two sides differ."""


class ServerLimit(Error, code=-868):
    """A limit of the server is reached."""


class NoHistory(Error, code=-869):
    """The stream has no log: only what comes can be read."""


class TransferBusy(Error, code=-870):
    """Another transfer is under way on the connection."""


class ServerStopping(Error, ConnectionError, code=-871):
    """The server is about to stop."""


class ServerSourceFailed(Error, code=-872):
    """The server cannot read what it serves."""


class StreamIdentity(Error, code=-873):
    """The stream is not the one that was read before."""


class RangeComplete(Error, code=-874):
    """Everything that was asked for has been read."""


class RangeIncomplete(Corrupt, code=-890):
    """The log ends before the range does: records that were there have gone."""


class FrameInvalid(Corrupt, code=-891):
    """Bytes that are no valid frame."""


class SpoolReset(Error, code=-892):
    """The ring's producer started its sequence again while it was drained."""
