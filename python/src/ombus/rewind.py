"""What `--to` of `ombus checkpoint rewind` means: positions for the streams of a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ._native import LogReader
from .checkpoint import IDS, Checkpoint, Position
from .errors import BadCheckpoint, InvalidArgument
from .log_info import log_info
from .times import to_ns
from .uri import StreamUri

EARLIEST, LATEST = "earliest", "latest"


@dataclass(frozen=True)
class LogEnds:
    """A stream's log: its identity, and which wal_seq it begins and ends with."""

    stream: str
    directory: str
    id: str
    first_seq: int
    #: One more than the last.
    next_seq: int


def log_ends(uris: Iterable[str]) -> list[LogEnds]:
    """The logs at these addresses (each may be a comma-separated list)."""
    found = []
    for uri in (one for text in uris for one in text.split(",") if one):
        address = StreamUri.parse(uri)
        if address.log_dir is None:
            raise InvalidArgument(f"{uri!r} names no log: use log:///dir or shm://name?log=/dir")
        found.append(_ends(address.stream, address.log_dir))
    return found


def _ends(stream: str, directory: str) -> LogEnds:
    info = log_info(directory)
    return LogEnds(stream, directory, info.id, info.first_seq or info.last_seq + 1, info.last_seq + 1)


@dataclass(frozen=True)
class Target:
    """Where to move streams: by name, or all of them."""

    #: By stream, "*" for those without one: a wal_seq, `earliest` or `latest`.
    places: Mapping[str, int | str]
    #: Or the first record at which the producer's clock had reached this.
    time_ns: int | None = None

    @classmethod
    def parse(cls, text: str) -> Target:
        """From the command line.

        >>> Target.parse('{"engine-0": 17}').places
        {'engine-0': 17}
        """
        if text.lower() in (EARLIEST, LATEST):
            return cls({"*": text.lower()})
        if not text.lstrip().startswith("{"):
            return cls({}, to_ns(text))
        try:
            places = json.loads(text)
        except ValueError as error:
            raise InvalidArgument(f"{text!r} is not JSON: {error}") from None
        places.pop(IDS, None)  # what `show` or a log file printed may be pasted as it is
        for stream, place in places.items():
            if place not in (EARLIEST, LATEST) and (type(place) is not int or not 0 <= place < 2**63):
                raise InvalidArgument(f"the position of {stream!r} is {place!r}: use a wal_seq, earliest or latest")
        if not places:
            raise InvalidArgument("the position names no stream")
        return cls(places)

    def resolve(self, checkpoint: Checkpoint, logs: list[LogEnds], source: int | None = None) -> dict[int, Position]:
        """The positions of all sources that move; `logs` beside those that the query keeps itself."""
        spools = [_ends(folder.name, str(folder)) for folder in checkpoint.spools()]
        by_name = {log.stream: log for log in [*spools, *logs]}
        present = checkpoint.last.positions
        if not present:
            raise BadCheckpoint(f"{checkpoint.path}: its last batch has no ombus source with a position")
        if source is not None and source not in present:
            raise BadCheckpoint(f"{checkpoint.path}: source {source} is not an ombus source, only {sorted(present)}")
        chosen = {number: position for number, position in present.items() if source in (None, number)}
        streams = {stream for position in chosen.values() for stream in position.streams}
        if strange := sorted(set(self.places) - streams - {"*"}):
            known = ", ".join(sorted(streams))
            raise BadCheckpoint(f"{checkpoint.path} has no stream {', '.join(strange)}; there is {known}")
        return {number: self._move(position, by_name) for number, position in chosen.items()}

    def _move(self, position: Position, logs: Mapping[str, LogEnds]) -> Position:
        streams, ids = dict(position.streams), dict(position.ids)
        for stream in streams:
            place = self.places.get(stream, self.places.get("*"))
            if place is None and self.time_ns is None:
                continue
            log = logs.get(stream)
            streams[stream] = self._seq(stream, place, log)
            if log is not None:
                ids[stream] = log.id  # of the log that the position was found in, should it have been created anew
        return Position(streams, ids)

    def _seq(self, stream: str, place: int | str | None, log: LogEnds | None) -> int:
        if log is None:
            if isinstance(place, int):
                return place
            what = place or "a time"
            raise InvalidArgument(f"where {what} is in the stream {stream!r}, its log tells: name it with --uri")
        if place == EARLIEST:
            return log.first_seq
        if place == LATEST:
            return log.next_seq
        if isinstance(place, int):
            if not log.first_seq <= place <= log.next_seq:
                held = f"{log.first_seq} to {log.next_seq - 1}"
                raise InvalidArgument(f"stream {stream!r} holds wal_seq {held}, not {place}")
            return place
        assert self.time_ns is not None
        return seq_at(log.directory, self.time_ns)


def seq_at(directory: str, time_ns: int) -> int:
    """wal_seq of the first record at which the clock had reached that time, or the one behind the last."""
    reader = LogReader(directory, 0, False, None)
    try:
        return reader.seek_time(time_ns)
    finally:
        reader.close()
