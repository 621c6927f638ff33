"""What the commands print: tables and lines for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

Value = str | int | float | bool | None


def print_json(value: object) -> None:
    """One JSON document on one line."""
    print(json.dumps(value), flush=True)


def print_table(rows: Sequence[Mapping[str, Value]]) -> None:
    """Columns named after the keys of the first row; numbers to the right."""
    if not rows:
        return
    lines = [list(rows[0])] + [["-" if value is None else str(value) for value in row.values()] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    right = [isinstance(value, (int, float)) for value in rows[0].values()]
    for line in lines:
        cells = (
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(line, widths, right, strict=True)
        )
        print("  ".join(cells).rstrip())


def print_fields(fields: Mapping[str, Value]) -> None:
    """One field per line."""
    for key, value in fields.items():
        print(f"{key:15} {value}")


def hex_lines(payload: bytes) -> Iterator[str]:
    """Sixteen bytes a line with their offset and text."""
    for start in range(0, len(payload), 16):
        part = payload[start : start + 16]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        yield f"{start:08x}  {part.hex(' '):47}  {text}"


def preview(payload: bytes, limit: int = 48) -> str:
    """A payload on one line: text where it is text, otherwise hexadecimal."""
    shown = payload[:limit]
    more = "..." if len(payload) > limit else ""
    text = shown.decode("utf-8", errors="replace")
    if text.isprintable() and "\ufffd" not in text:
        return text + more
    return shown.hex(" ", 8) + more
