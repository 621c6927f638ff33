"""Addresses of streams: one URI names a stream everywhere.

======================================  ==========================================================
``shm://engine-0``                      the ring ``/om-bus-engine-0`` on this host
``shm:///raw-name``                     the ring ``/raw-name``, as it is
``shm://engine-0?log=/var/engine-0``    a ring and where its log is
``log:///var/ombus/engine-0``           a log directory
``tcp://host:9100/engine-0``            a server; the stream's name may be left out when it serves one
======================================  ==========================================================
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from .errors import BadAddress, UnsupportedScheme

RING_PREFIX = "/om-bus-"

#: Scheme -> the options it knows after "?".
_OPTIONS: dict[str, frozenset[str]] = {
    "shm": frozenset({"log"}),
    "log": frozenset(),
    "tcp": frozenset(),
}


@dataclass(frozen=True)
class StreamUri:
    """A parsed address.

    >>> StreamUri.parse("tcp://10.0.0.7:9100/engine-0").port
    9100
    """

    scheme: str
    #: The stream's name: ``engine-0``; empty for a server that serves one stream.
    stream: str
    #: ``shm``: name of the shared-memory object. ``log``: the directory.
    path: str = ""
    host: str = ""
    port: int = 0
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, uri: str) -> StreamUri:
        """Parse an address; :class:`~ombus.errors.BadAddress` says what is wrong with it."""
        if not isinstance(uri, str):
            raise TypeError(f"an address is a str, not {type(uri).__name__}")
        try:
            parts = urlsplit(uri)
            port = parts.port
        except ValueError as reason:
            raise BadAddress(f"{uri!r}: {reason}") from None
        if parts.scheme not in _OPTIONS:
            raise BadAddress(f"{uri!r}: no such scheme {parts.scheme!r}")
        if parts.fragment or parts.username is not None:
            raise BadAddress(f"{uri!r}: '#' and '@' have no meaning here")
        options = _parse_options(uri, parts.scheme, parts.query)
        host, path = unquote(parts.netloc), unquote(parts.path)
        if "\0" in host + path:
            raise BadAddress(f"{uri!r}: a name cannot hold a NUL")
        if parts.scheme == "shm":
            return _parse_shm(uri, host, path, options)
        if parts.scheme == "log":
            return _parse_log(uri, host, path, options)
        return _parse_tcp(uri, parts.hostname or "", port, path, options)

    def ring_name(self) -> str:
        """Name of the shared-memory object; an error when the address names no ring."""
        if self.scheme == "log":
            raise BadAddress(f"log://{self.path} is a log, not a ring")
        if self.scheme != "shm":
            raise UnsupportedScheme(f"{self.scheme}://")
        return self.path

    @property
    def log_dir(self) -> str | None:
        """The log's directory; None when the address names no log."""
        return self.path if self.scheme == "log" else self.options.get("log")


def _parse_options(uri: str, scheme: str, query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for key, value in parse_qsl(query, keep_blank_values=True):
        if key not in _OPTIONS[scheme]:
            known = ", ".join(sorted(_OPTIONS[scheme])) or "none"
            raise BadAddress(f"{uri!r}: no option {key!r} for {scheme}://; known: {known}")
        if key in options or not value:
            raise BadAddress(f"{uri!r}: option {key!r} needs one value")
        options[key] = value
    return options


def _parse_shm(uri: str, host: str, path: str, options: Mapping[str, str]) -> StreamUri:
    name = host or path.removeprefix("/")
    if not name or "/" in name or (host and path):
        raise BadAddress(f"{uri!r}: a ring has one name without slashes")
    if host:
        return StreamUri("shm", host, RING_PREFIX + host, options=options)
    return StreamUri("shm", name.removeprefix(RING_PREFIX[1:]), "/" + name, options=options)


def _parse_log(uri: str, host: str, path: str, options: Mapping[str, str]) -> StreamUri:
    if host:
        raise BadAddress(f"{uri!r}: a directory has three slashes: log:///{host}{path}")
    directory = path.rstrip("/")
    if not directory:
        raise BadAddress(f"{uri!r}: no directory given")
    return StreamUri("log", directory.rpartition("/")[2], directory, options=options)


def _parse_tcp(uri: str, host: str, port: int | None, path: str, options: Mapping[str, str]) -> StreamUri:
    if not host or not port:
        raise BadAddress(f"{uri!r}: host and port are needed, as in tcp://host:9100")
    stream = path.removeprefix("/")
    if "/" in stream:
        raise BadAddress(f"{uri!r}: a stream's name has no slashes")
    return StreamUri("tcp", stream, host=host, port=port, options=options)


def ring_uri(name: str) -> str:
    """The address of a ring by the name of its object: the inverse of :meth:`StreamUri.parse`.

    >>> ring_uri("/om-bus-engine-0")
    'shm://engine-0'
    """
    if name.startswith(RING_PREFIX) and name != RING_PREFIX:
        return "shm://" + quote(name[len(RING_PREFIX) :], safe="")
    return "shm:///" + quote(name.removeprefix("/"), safe="")


def log_uri(directory: str) -> str:
    """The address of a log by its directory.

    >>> log_uri("/var/ombus/engine 0")
    'log:///var/ombus/engine%200'
    """
    return "log://" + quote(os.path.abspath(directory))
