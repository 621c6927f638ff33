"""OpenMatch's own WAL files, for importing them into a log.

No file header; each record is an 8-byte word (seq << 24 | type << 16 | length), the payload, and a CRC-32 over
both unless the writer has turned it off. Every flush is padded with zeros to 4096 bytes.
"""

from __future__ import annotations

import mmap
import zlib
from collections.abc import Iterator
from os import PathLike, fstat
from typing import Literal

from ._native import Record
from .errors import CannotOpen, InvalidArgument, WalDamaged

PAGE = 4096
_WORD = 8
_CRC = 4
_LOOK_AHEAD = 64  # records, to tell whether a file has checksums


class OpenMatchWal:
    """The records of an OpenMatch WAL file, in order.

    >>> for record in OpenMatchWal("engine.wal"):
    ...     print(record.seq, record.type, record.payload)

    `crc` says whether records carry a checksum; "auto" finds out. Damage is raised as WalDamaged with its
    offset; with `skip_damage` reading goes on at the next page that starts with a record, and `damaged`
    has the offsets.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        crc: bool | Literal["auto"] = "auto",
        skip_damage: bool = False,
    ) -> None:
        if crc not in (True, False, "auto"):
            raise InvalidArgument(f"crc is {crc!r}, allowed are True, False and 'auto'")
        self.path = path
        self.skip_damage = skip_damage
        #: Offsets of what was passed over.
        self.damaged: list[int] = []
        #: How far reading has come, in bytes.
        self.offset = 0
        try:
            with open(path, "rb") as file:
                self.size = fstat(file.fileno()).st_size
                self._data: mmap.mmap | bytes = (
                    mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if self.size else b""
                )
        except OSError as reason:
            raise CannotOpen(f"{path}: {reason.strerror}") from None
        self.crc = self._has_crc() if crc == "auto" else crc

    def __iter__(self) -> Iterator[Record]:
        offset, last_seq = 0, 0
        while True:
            offset = self._skip_padding(offset, last_seq, self.crc)
            self.offset = offset
            if offset >= self.size:
                return
            record, end, why = self._read(offset, last_seq, self.crc)
            if record is None:
                if not self.skip_damage:
                    error = WalDamaged(f"{self.path}: offset {offset}: {why}")
                    error.offset = offset
                    raise error
                self.damaged.append(offset)
                offset = self._next_page_with_record(offset, last_seq)
                continue
            yield record
            offset, last_seq = end, record.seq

    def _skip_padding(self, offset: int, last_seq: int, crc: bool) -> int:
        """Zeros lead to the next page: a word of them, or fewer where a flush has ended just before it.

        Those few may also be the start of a word that goes over the page's end, which then makes a good record.
        """
        while offset < self.size:
            boundary = (offset // PAGE + 1) * PAGE
            if any(self._data[offset : min(offset + _WORD, boundary)]):
                return offset
            if boundary - offset < _WORD:
                record = self._read(offset, last_seq, crc)[0]
                if record and (crc or record.seq == last_seq + 1):
                    return offset
            offset = boundary
        return self.size

    def _read(self, offset: int, last_seq: int, crc: bool) -> tuple[Record | None, int, str]:
        """(record, its end, "") or (None, its end as far as known, why not)."""
        if offset + _WORD > self.size:
            return None, self.size, "the file ends within a record's header"
        word = int.from_bytes(self._data[offset : offset + _WORD], "little")
        seq, kind, length = word >> 24, word >> 16 & 0xFF, word & 0xFFFF
        body = offset + _WORD + length
        end = body + (_CRC if crc else 0)
        if end > self.size:
            return None, self.size, f"a record of {length} bytes does not fit into the file"
        if crc:
            stored = int.from_bytes(self._data[body:end], "little")
            computed = zlib.crc32(self._data[offset:body])
            if stored != computed:
                return None, end, f"checksum {stored:08x}, computed {computed:08x}"
        if seq <= last_seq:
            return None, end, f"wal_seq {seq} after {last_seq}"
        return Record(seq, kind, self._data[offset + _WORD : body]), end, ""

    def _next_page_with_record(self, offset: int, last_seq: int) -> int:
        offset = (offset // PAGE + 1) * PAGE
        while offset < self.size and self._read(offset, last_seq, self.crc)[0] is None:
            offset += PAGE
        return min(offset, self.size)

    def _has_crc(self) -> bool:
        """A single checksum that fits settles it; where none does, a walk without them must make sense."""
        for crc in (True, False):
            offset, last_seq, good = 0, 0, 0
            for _ in range(_LOOK_AHEAD):
                offset = self._skip_padding(offset, last_seq, crc)
                if offset >= self.size:
                    break
                record, end, _ = self._read(offset, last_seq, crc)
                if record is None and (not crc or end >= self.size):
                    break
                good += record is not None
                last_seq = record.seq if record else last_seq
                offset = end
            if crc and good:
                return True
        return not (good or offset >= self.size)
