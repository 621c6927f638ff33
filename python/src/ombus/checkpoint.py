"""Checkpoints of Spark Structured Streaming queries: where each ombus source stands, and how to move it.

A query's checkpoint is a directory. ``offsets/N`` says where batch N ends, one line per source, and is written before
the batch runs; ``commits/N`` says that it is done. A query that starts again goes on where the latest committed batch
ended, whatever ``startingOffsets`` says. So moving a query means: let its last batch end elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from .errors import BadCheckpoint

#: In an ombus offset, beside the streams' positions: the identities of their logs.
IDS = "__ids"
#: In a source's folder: where a query without a batch begins. Written by the source when it starts first.
INITIAL_OFFSET = "ombus-initial-offset"
#: In a source's folder: the logs of rings that have none of their own.
SPOOL = "ombus-spool"
#: The only version that Spark's files have had so far.
VERSION = "v1"
#: A checkpoint that changed so recently probably belongs to a running query.
QUIET_SECONDS = 10.0


@dataclass(frozen=True)
class Position:
    """Where one ombus source stands: for each stream the next wal_seq to read."""

    streams: Mapping[str, int]
    #: The identity of each stream's log, in hexadecimal.
    ids: Mapping[str, str]

    @classmethod
    def parse(cls, text: str) -> Position | None:
        """The position in a line of an offset file; None for another kind of source, or one that had nothing yet.

        >>> Position.parse('{"engine-0":7,"__ids":{"engine-0":"5f"}}').streams
        {'engine-0': 7}
        """
        try:
            members = json.loads(text)
        except ValueError:
            return None
        if not isinstance(members, dict) or not isinstance(members.get(IDS), dict):
            return None
        ids = members.pop(IDS)
        if not all(type(value) is int and value >= 0 for value in members.values()):
            return None
        return cls(members, ids)

    def to_json(self) -> str:
        """As the source writes it."""
        return json.dumps(
            {**dict(sorted(self.streams.items())), IDS: dict(sorted(self.ids.items()))}, separators=(",", ":")
        )


@dataclass(frozen=True)
class Batch:
    """One micro-batch: where it ends."""

    id: int
    committed: bool
    #: Spark's own description of the batch: its time, watermark and settings.
    metadata: Mapping[str, Any]
    #: A line per source, as it is in the file.
    lines: Sequence[str]

    @property
    def time_ms(self) -> int:
        """When the batch was planned, in milliseconds since 1970."""
        return int(self.metadata.get("batchTimestampMs", 0))

    @property
    def planned_at(self) -> str:
        """The same in UTC."""
        return _utc(self.time_ms)

    @property
    def watermark_ms(self) -> int:
        """Event times below this are too late for the query; 0 = it has none."""
        return int(self.metadata.get("batchWatermarkMs", 0))

    @property
    def positions(self) -> dict[int, Position]:
        """By the source's number in the query; ombus sources only."""
        parsed = {number: Position.parse(line) for number, line in enumerate(self.lines)}
        return {number: position for number, position in parsed.items() if position is not None}

    def with_positions(self, positions: Mapping[int, Position]) -> Batch:
        """The same batch, ending elsewhere."""
        lines = [positions[n].to_json() if n in positions else line for n, line in enumerate(self.lines)]
        return replace(self, lines=lines)

    def to_text(self) -> str:
        """The offset file."""
        return "\n".join([VERSION, json.dumps(self.metadata, separators=(",", ":")), *self.lines])


@dataclass(frozen=True)
class Rewound:
    """What :meth:`Checkpoint.rewind` did."""

    #: The batch whose end was moved; the query goes on with the next one. -1: the query's start was moved.
    batch: int
    before: Mapping[int, Position]
    after: Mapping[int, Position]
    #: Where the files are as they were before; None when nothing was written.
    backup: Path | None
    #: What the user must know about the query's sink and state.
    notes: Sequence[str]


class _Plan(NamedTuple):
    batch: int
    #: As it is to be written; None: the query begins anew, elsewhere.
    moved: Batch | None
    notes: Sequence[str]
    #: Whether it must be marked as committed.
    commit: bool = False


class Checkpoint:
    """The checkpoint of one query, on a local path.

    >>> Checkpoint("/var/checkpoints/volumes").last.positions[0].streams  # doctest: +SKIP
    {'engine-0': 1201}
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        text = os.fspath(path)
        local = text.removeprefix("file://") if text.startswith("file:///") else text.removeprefix("file:")
        self.path = Path(local)
        if "://" in local:
            raise BadCheckpoint(f"{text}: only local paths can be read; copy it here, with all its folders")
        if not (self.path / "offsets").is_dir():
            raise BadCheckpoint(f"{text}: there is no folder `offsets`: name a query's checkpointLocation")

    @property
    def query_id(self) -> str:
        """The query's id, the same over restarts; empty when unknown."""
        try:
            return str(json.loads((self.path / "metadata").read_text())["id"])
        except (OSError, ValueError, LookupError, TypeError):
            return ""

    @property
    def stateful(self) -> bool:
        """Whether the query keeps state, as aggregations, joins of streams and deduplication do."""
        return (self.path / "state").is_dir()

    def batches(self) -> list[Batch]:
        """All batches that the checkpoint still knows, oldest first. Spark keeps about the last hundred."""
        committed = set(_numbers(self.path / "commits"))
        return [self._read(number, number in committed) for number in sorted(_numbers(self.path / "offsets"))]

    @property
    def last(self) -> Batch:
        """The latest batch."""
        number = max(_numbers(self.path / "offsets"), default=None)
        if number is None:
            raise BadCheckpoint(f"{self.path}: the query has not planned a batch yet: set startingOffsets instead")
        return self._read(number, (self.path / "commits" / str(number)).is_file())

    def _read(self, number: int, committed: bool) -> Batch:
        file = self.path / "offsets" / str(number)
        try:
            version, metadata, *lines = file.read_text(encoding="utf-8").splitlines()
            if version != VERSION:
                raise BadCheckpoint(f"{file}: its version is {version!r}, and only {VERSION} is known here")
            return Batch(number, committed, json.loads(metadata or "{}"), lines)
        except BadCheckpoint:
            raise
        except (OSError, ValueError) as error:
            raise BadCheckpoint(f"{file}: {error}") from None

    def spools(self) -> list[Path]:
        """The logs that the query itself keeps, of rings without one; each is named after its stream."""
        return sorted(folder for folder in (self.path / "sources").glob(f"*/{SPOOL}/*") if folder.is_dir())

    def users(self) -> str:
        """Why a query seems to run on this checkpoint; empty when nothing says so. Spark itself leaves no lock."""
        changed = max(
            (file.stat().st_mtime for folder in ("offsets", "commits") for file in (self.path / folder).glob("*")),
            default=0.0,
        )
        age = time.time() - changed
        if age < QUIET_SECONDS:
            return f"it changed {max(age, 0):.0f} s ago"
        for pid in _processes_with_files_in(self.path.resolve()):
            return f"process {pid} has files open in it"
        return ""

    def rewind(self, moved: Mapping[int, Position], *, force: bool = False, dry_run: bool = False) -> Rewound:
        """Let the query go on at `moved` (by source) when it starts the next time; forward works as well.

        The number of the next batch stays the same or grows: a sink that skips batches it knows (the file sink, Delta)
        takes what is read again as new records. The files as they were go to a folder beside them first.
        """
        batch = self.last
        before = batch.positions
        strange = sorted(set(moved) - set(before))
        if strange or not moved:
            raise BadCheckpoint(f"{self.path}: source {strange} is not an ombus source with a position")
        if not force and (users := self.users()):
            raise BadCheckpoint(f"{self.path}: a query seems to use it ({users}): stop it, then wait or use --force")
        plan = self._plan(batch, moved)
        backup = None
        if not dry_run:
            backup = self._backup()
            self._carry_out(plan, moved, backup)
        return Rewound(plan.batch, before, {**before, **moved}, backup, plan.notes)

    def _plan(self, last: Batch, moved: Mapping[int, Position]) -> _Plan:
        """Which batch is to end elsewhere, and what the user must know."""
        notes = [
            "the sink is not rewound: records that are read again are written again, under new batch numbers; "
            "a sink that must hold them once needs a key (stream, wal_seq)"
        ]
        if self.stateful:
            notes.append("the query's state is not rewound: aggregates count what is read again a second time")
        if last.watermark_ms:
            notes.append(
                f"the watermark stays at {_utc(last.watermark_ms)}: stateful operators drop records that are older"
            )
        if last.committed:
            return _Plan(last.id, last.with_positions(moved), notes)
        if not self.stateful:
            notes.append(f"batch {last.id} was planned but not committed: the sink may or may not have its records")
            return _Plan(last.id, last.with_positions(moved), notes, commit=True)
        # Its state may not exist, so it cannot count as done: go on after the batch before it.
        notes.append(
            f"batch {last.id} was planned but not committed, and is planned again: "
            "should the sink have it already and skip known batches, its new records are missing there"
        )
        earlier = [batch for batch in self.batches() if batch.committed]
        if earlier and not set(moved) - set(earlier[-1].positions):
            return _Plan(earlier[-1].id, earlier[-1].with_positions(moved), notes)
        if earlier:
            raise BadCheckpoint(f"{self.path}: its last committed batch has no position of that source yet")
        return _Plan(-1, None, notes)

    def _carry_out(self, plan: _Plan, moved: Mapping[int, Position], backup: Path) -> None:
        for number in _numbers(self.path / "offsets"):
            if number > plan.batch:
                _remove(self.path / "offsets" / str(number))
        if plan.moved is None:
            (self.path / "state").rename(backup / "state")  # Spark begins with none
            for source, position in moved.items():
                _write(self.path / "sources" / str(source) / INITIAL_OFFSET, position.to_json())
            return
        _write(self.path / "offsets" / str(plan.batch), plan.moved.to_text())
        if plan.commit:
            commit = f'{VERSION}\n{{"nextBatchWatermarkMs":{plan.moved.watermark_ms}}}'
            _write(self.path / "commits" / str(plan.batch), commit)

    def _backup(self) -> Path:
        folder = self.path / time.strftime("ombus-backup-%Y%m%dT%H%M%SZ", time.gmtime())
        number = 0
        while True:
            try:
                (target := folder.with_name(folder.name + (f"-{number}" if number else ""))).mkdir()
                break
            except FileExistsError:
                number += 1
        for name in ("offsets", "commits", "sources"):
            if (self.path / name).is_dir():
                shutil.copytree(self.path / name, target / name, ignore=shutil.ignore_patterns(SPOOL))
        return target


def _numbers(folder: Path) -> list[int]:
    """The batches that have a file there. Spark writes other files beside them: checksums, temporary ones."""
    try:
        return [int(file.name) for file in folder.iterdir() if file.name.isdecimal()]
    except FileNotFoundError:
        return []


def _write(file: Path, text: str) -> None:
    """Replace a file in one step; the checksum that Hadoop keeps beside it would not fit any more."""
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_name(f".{file.name}.ombus-new")
    with new.open("w", encoding="utf-8") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    new.replace(file)
    _sync(file.parent)


def _remove(file: Path) -> None:
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    file.unlink()
    _sync(file.parent)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _processes_with_files_in(folder: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            names = [os.readlink(file) for file in (process / "fd").iterdir()]
        except OSError:  # it has ended, or belongs to another user
            continue
        if any(Path(name).is_relative_to(folder) for name in names if name.startswith("/")):
            found.append(int(process.name))
    return sorted(set(found) - {os.getpid()})


def _utc(time_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_ms / 1000))
