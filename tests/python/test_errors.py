"""Every error code of the library has an exception, and each says what to do."""

import pickle
import re
from pathlib import Path

import ombus
import pytest
from ombus import _native, errors

HEADER = Path(__file__).parents[2] / "native/include/ombus/om_bus_error.h"
CODES = {name: int(code) for name, code in re.findall(r"X\((OM_ERR_\w+),\s*(-\d+)", HEADER.read_text())}


def test_the_header_was_read():
    assert CODES["OM_ERR_BUS_INIT"] == -800
    assert _native.error_codes() == CODES


@pytest.mark.parametrize("name", CODES)
def test_every_code_has_a_class_of_its_own(name):
    error = errors.from_code(CODES[name], "the detail")
    assert type(error) is not ombus.Error, f"errors.py has no class for {name}"
    assert isinstance(error, ombus.Error)
    assert (error.code, error.name, error.detail) == (CODES[name], name, "the detail")
    assert getattr(ombus, type(error).__name__) is type(error)


@pytest.mark.parametrize("name", CODES)
def test_every_message_says_what_happened_and_what_to_do(name):
    message = str(errors.from_code(CODES[name], "the detail"))
    what, _, remedy = message.removesuffix(" (the detail)").partition(": ")
    assert what
    assert len(remedy) > 10, f"no remedy in {message!r}"
    assert message.endswith("(the detail)")


def test_an_unknown_code_is_still_an_error():
    error = errors.from_code(-899, "new")
    assert type(error) is ombus.Error
    assert (error.code, error.name, str(error)) == (-899, "", "unknown error (new)")


def test_errors_are_also_what_python_calls_them():
    assert issubclass(ombus.Timeout, TimeoutError)
    assert issubclass(ombus.InvalidArgument, ValueError)
    assert issubclass(ombus.CannotOpen, OSError)
    assert issubclass(ombus.OutOfMemory, MemoryError)
    assert issubclass(ombus.Closed, ombus.InvalidArgument)


def test_an_error_survives_pickling():
    error = errors.from_code(-810, "expected 5, got 7")
    error.record = ombus.Record(7, 1, b"x")
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), copy.code, str(copy), copy.record) == (type(error), -810, str(error), error.record)
    timeout = pickle.loads(pickle.dumps(errors.from_code(-824, "full")))
    assert (type(timeout), timeout.detail) == (ombus.Timeout, "full")
