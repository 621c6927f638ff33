"""The native library inside the package."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import ombus

VERSION = (Path(__file__).parents[2] / "VERSION").read_text().strip()


def test_versions_come_from_one_file():
    assert ombus.__version__ == VERSION


def test_others_can_load_the_same_library():
    path = ombus.library_path()
    assert path.name == "libombus.so"
    assert path.is_relative_to(Path(ombus.__file__).resolve().parent)
    library = ctypes.CDLL(str(path))
    library.om_bus_version.restype = ctypes.c_char_p
    assert library.om_bus_version().decode() == VERSION


def test_a_library_of_another_release_is_refused(tmp_path):
    old, new = f"\0{VERSION}\0".encode(), b"\0" + b"9" * len(VERSION) + b"\0"
    library = ombus.library_path().read_bytes()
    assert library.count(old) == 1
    (tmp_path / "libombus.so").write_bytes(library.replace(old, new))
    result = subprocess.run(
        [sys.executable, "-c", "import ombus"],
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    assert f"ImportError: ombus {VERSION} has loaded libombus {'9' * len(VERSION)}" in result.stderr
    assert str(tmp_path) in result.stderr
    assert "LD_LIBRARY_PATH" in result.stderr


def test_everything_public_is_documented():
    for name in ombus.__all__:
        if not name.startswith("_"):
            assert getattr(ombus, name).__doc__, name
    for kind in (ombus.Producer, ombus.Consumer, ombus.RecordBatch, ombus.ZeroCopyBatch, ombus.RingInfo):
        for name in dir(kind):
            if not name.startswith("_") and name != "uri" and callable(getattr(kind, name)):
                assert getattr(kind, name).__doc__, f"{kind.__name__}.{name}"
