"""Where a log is damaged."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class DamageKind(Enum):
    """What is damaged."""

    #: Bytes that are not a valid frame.
    FRAME = 1
    #: A segment's header.
    HEADER = 2
    #: A segment file that should be there.
    MISSING = 3
    #: A segment of another log.
    FOREIGN = 4
    #: A torn tail: no damage of what was promised; the next writer cuts it.
    TAIL = 5
    #: An index file: harmless, readers rebuild it.
    INDEX = 6


@dataclass(frozen=True)
class Damage:
    """One damaged place of a log."""

    kind: DamageKind
    #: Whole records found inside what was or would be cut.
    records: int
    segment: int
    offset: int
    size_bytes: int
    #: Records from here ...
    lost_first_seq: int
    #: ... to here may be lost; 0 = all that followed.
    lost_last_seq: int
    #: The place in words.
    text: str = ""

    @classmethod
    def of(cls, fields: tuple[int, int, int, int, int, int, int], text: str = "") -> Damage:
        """From the extension's tuple."""
        kind, records, segment, offset, size_bytes, lost_first_seq, lost_last_seq = fields
        return cls(DamageKind(kind), records, segment, offset, size_bytes, lost_first_seq, lost_last_seq, text)
