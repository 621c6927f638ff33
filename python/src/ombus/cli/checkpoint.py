"""`ombus checkpoint`: where Spark queries stand, and how to move them."""

from __future__ import annotations

import argparse

from ..checkpoint import Batch, Checkpoint, Position, Rewound
from ..rewind import Target, log_ends
from .commands import Commands, add_command
from .output import Value, print_json, print_table

SHOWN_BATCHES = 10


def add_commands(groups: Commands) -> None:
    """Add `checkpoint` and its subcommands."""
    group = groups.add_parser("checkpoint", help="positions of Spark queries")
    commands = group.add_subparsers(metavar="COMMAND", required=True)
    show = add_command(commands, "show", _show, "show where a query stands, batch by batch")
    show.add_argument("path", help="the query's checkpointLocation, a local path")
    show.add_argument("--batches", type=int, default=SHOWN_BATCHES, metavar="N", help=f"the last N ({SHOWN_BATCHES})")
    _add_uri(show, "the logs of its streams, to show how far it is behind")
    rewind = add_command(commands, "rewind", _rewind, "move a stopped query back, or forward")
    rewind.add_argument("path", help="the query's checkpointLocation, a local path")
    rewind.add_argument(
        "--to",
        required=True,
        metavar="POSITION",
        help='JSON such as {"engine-0": 17} (the next wal_seq to read; "*" stands for all others), earliest, latest, '
        "or a time such as 2026-01-31T12:00:00Z",
    )
    _add_uri(rewind, "the logs of its streams; needed for earliest, latest and a time")
    rewind.add_argument("--source", type=int, metavar="N", help="only the query's source N, as `show` numbers them")
    rewind.add_argument("--dry-run", action="store_true", help="only say what would be done")
    rewind.add_argument("--force", action="store_true", help="even if a query seems to run")


def _add_uri(command: argparse.ArgumentParser, description: str) -> None:
    command.add_argument("--uri", action="append", default=[], metavar="URI", help=description)


def _show(options: argparse.Namespace) -> None:
    checkpoint = Checkpoint(options.path)
    ends = {end.stream: end.next_seq for end in log_ends(options.uri)}
    batches = checkpoint.batches()
    shown = batches[-options.batches :] if options.batches > 0 else batches
    rows = [row for batch in shown for row in _rows(batch, ends if batch is shown[-1] else {})]
    if options.format == "json":
        print_json(
            {
                "query_id": checkpoint.query_id,
                "stateful": checkpoint.stateful,
                "in_use": checkpoint.users(),
                "batches": [_batch_json(batch, ends) for batch in shown],
            }
        )
        return
    print(f"query {checkpoint.query_id or 'without an id'}, {'with' if checkpoint.stateful else 'without'} state")
    if not rows:
        print("no position of an ombus source")
    elif ends:
        for row in rows:
            row.setdefault("lag", "")
    print_table(rows)


def _rows(batch: Batch, ends: dict[str, int]) -> list[dict[str, Value]]:
    rows: list[dict[str, Value]] = []
    for source, position in batch.positions.items():
        for stream, next_seq in sorted(position.streams.items()):
            row: dict[str, Value] = {
                "batch": batch.id,
                "state": "committed" if batch.committed else "planned",
                "planned_at": batch.planned_at,
                "source": source,
                "stream": stream,
                "next_wal_seq": next_seq,
            }
            if stream in ends:
                row["lag"] = str(ends[stream] - next_seq)
            rows.append(row)
    return rows


def _batch_json(batch: Batch, ends: dict[str, int]) -> dict[str, object]:
    return {
        "batch": batch.id,
        "committed": batch.committed,
        "planned_at": batch.planned_at,
        "watermark_ms": batch.watermark_ms,
        "sources": {
            str(source): {
                stream: {
                    "next_wal_seq": next_seq,
                    "log_id": position.ids.get(stream, ""),
                    **({"lag": ends[stream] - next_seq} if stream in ends else {}),
                }
                for stream, next_seq in position.streams.items()
            }
            for source, position in batch.positions.items()
        },
    }


def _rewind(options: argparse.Namespace) -> None:
    checkpoint = Checkpoint(options.path)
    target = Target.parse(options.to)
    moved = target.resolve(checkpoint, log_ends(options.uri), options.source)
    done = checkpoint.rewind(moved, force=options.force, dry_run=options.dry_run)
    if options.format == "json":
        print_json(_rewound_json(done))
        return
    verb = "would go on" if options.dry_run else "goes on"
    when = f"after batch {done.batch}" if done.batch >= 0 else "from its start"
    print(f"{when} the query {verb} at:")
    print_table(_moves(done))
    if done.backup:
        print(f"the files as they were: {done.backup}")
    for note in done.notes:
        print(f"note: {note}")


def _moves(done: Rewound) -> list[dict[str, Value]]:
    return [
        {
            "source": source,
            "stream": stream,
            "was": done.before[source].streams.get(stream, 0),
            "is": next_seq,
        }
        for source, position in done.after.items()
        for stream, next_seq in sorted(position.streams.items())
    ]


def _rewound_json(done: Rewound) -> dict[str, object]:
    def streams(positions: dict[int, Position]) -> dict[str, object]:
        return {str(source): dict(position.streams) for source, position in positions.items()}

    return {
        "batch": done.batch,
        "before": streams(dict(done.before)),
        "after": streams(dict(done.after)),
        "backup": str(done.backup) if done.backup else None,
        "notes": list(done.notes),
    }
