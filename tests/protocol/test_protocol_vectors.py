"""The protocol's test vectors, encoded a second time from the document alone, and the document itself.

The C test of the same name encodes them with the library; here nothing of the library is used, so that the two agree
only when the format is what docs/protocol.md says.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import struct
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
VECTORS = {v["name"]: v for v in json.loads((ROOT / "tests/vectors/protocol.json").read_text())["frames"]}
MAGIC = 0x4F4D5446


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def plain(wal_type: int, wal_seq: int, payload: bytes) -> bytes:
    return struct.pack("<IBBHQ", MAGIC, wal_type, 0, len(payload), wal_seq) + payload


def extended(wal_type: int, wal_seq: int, timestamp_ns: int, payload: bytes) -> bytes:
    head = struct.pack("<IBBHQQ", MAGIC, wal_type, 1, min(len(payload), 0xFFFF), wal_seq, timestamp_ns)
    length = struct.pack("<I", len(payload))
    crc = struct.pack("<I", crc32c(head[4:] + length + payload))
    return head + crc + length + payload + bytes(-len(payload) % 8)


def string(text: str) -> bytes:
    return struct.pack("<H", len(text.encode())) + text.encode()


NONCES = {"hello_request": bytes(range(32)), "hello_answer": bytes(range(0xA0, 0xC0))}


def proof(secret: str, label: bytes) -> bytes:
    hellos = [bytes.fromhex(VECTORS[name]["hex"])[16:] for name in ("hello_request", "hello_answer")]
    message = label + b"".join(struct.pack("<I", len(hello)) + hello for hello in hellos)
    return hmac.new(secret.encode(), message, hashlib.sha256).digest()


def fields(v: dict[str, Any]) -> bytes:
    match v["name"]:
        case "hello_request":
            return struct.pack("<I", v["features"]) + NONCES["hello_request"] + string(v["agent"])
        case "hello_answer":
            numbers = struct.pack("<QII", v["server_id"], v["flags"], v["streams"])
            return struct.pack("<I", v["features"]) + NONCES["hello_answer"] + numbers + string(v["agent"])
        case "auth_request":
            return proof(v["secret"], b"ombus client v1")
        case "auth_answer":
            return proof(v["secret"], b"ombus server v1")
        case "status_request":
            return struct.pack("<IQ", v["flags"], v["time_ns"]) + string(v["stream"])
        case "status_answer":
            entries = b""
            for s in v["streams"]:
                seqs = [s[k] for k in ("first_seq", "last_seq", "durable_seq", "epoch", "time_seq")]
                entries += struct.pack("<IIQQQQQ", s["flags"], 0, *seqs) + bytes.fromhex(s["id"]) + string(s["name"])
            return struct.pack("<I", v["count"]) + entries
        case "replay_request" | "subscribe_request":
            return struct.pack("<IQQ", v["flags"], v["from"], v["to"]) + bytes.fromhex(v["id"]) + string(v["stream"])
        case "replay_answer":
            numbers = struct.pack("<IQQ", v["flags"], v["from"], v["to"])
            return numbers + bytes.fromhex(v["id"]) + struct.pack("<Q", v["epoch"])
        case "end":
            return struct.pack("<IQ", 0, v["next"])
        case "error":
            return struct.pack("<i", v["code"]) + string(v["text"])
    raise AssertionError(f"unknown vector {v['name']}")


def encode(v: dict[str, Any]) -> bytes:
    if "op" in v:
        return plain(0xFD, v["request"], struct.pack("<BBH", v["op"], 1, 0) + fields(v))
    if v["name"] == "slow_warning":
        return plain(v["wal_type"], v["wal_seq"], struct.pack("<II", v["pending"], v["capacity"]))
    payload = bytes.fromhex(v["payload"])
    if v["flags"]:
        return extended(v["wal_type"], v["wal_seq"], v["timestamp_ns"], payload)
    return plain(v["wal_type"], v["wal_seq"], payload)


@pytest.mark.parametrize("name", VECTORS)
def test_a_vector_has_the_bytes_that_the_document_describes(name: str) -> None:
    assert encode(VECTORS[name]).hex() == VECTORS[name]["hex"]


def test_the_document_shows_the_vectors() -> None:
    text = (ROOT / "docs/protocol.md").read_text()
    shown = dict(re.findall(r"<!-- vector: (\w+) -->\n```\n([0-9a-f \n]+)```", text))
    assert len(shown) > 10
    for name, hex_bytes in shown.items():
        assert re.sub(r"\s", "", hex_bytes) == VECTORS[name]["hex"], name
