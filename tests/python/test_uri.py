"""Addresses: what each means, and what is said about a wrong one."""

import ombus
import pytest
from ombus.uri import StreamUri, ring_uri


def test_a_ring_has_a_prefixed_object_name():
    address = StreamUri.parse("shm://engine-0")
    assert (address.scheme, address.stream, address.path) == ("shm", "engine-0", "/om-bus-engine-0")
    assert address.ring_name() == "/om-bus-engine-0"


def test_a_raw_ring_name_is_used_as_it_is():
    assert StreamUri.parse("shm:///raw-name").ring_name() == "/raw-name"
    assert StreamUri.parse("shm:///om-bus-engine-0").stream == "engine-0"


@pytest.mark.parametrize("name", ["/om-bus-engine-0", "/raw", "/om-bus-", "/om-bus-Engine 0?#%", "/Äöü"])
def test_a_ring_s_address_leads_back_to_its_name(name):
    assert StreamUri.parse(ring_uri(name)).ring_name() == name


def test_names_keep_their_case():
    assert StreamUri.parse("shm://Engine-A").stream == "Engine-A"


def test_a_log_is_a_directory():
    address = StreamUri.parse("log:///var/ombus/engine-0/")
    assert (address.path, address.stream) == ("/var/ombus/engine-0", "engine-0")


def test_a_server_may_leave_out_the_stream():
    address = StreamUri.parse("tcp://host:9100/engine-0")
    assert (address.host, address.port, address.stream) == ("host", 9100, "engine-0")
    assert StreamUri.parse("tcp://[::1]:9100").stream == ""


def test_options_are_known_by_scheme():
    assert StreamUri.parse("shm://engine-0?log=/var/engine-0").options == {"log": "/var/engine-0"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no such scheme"),
        ("engine-0", "no such scheme"),
        ("kafka://engine-0", "no such scheme 'kafka'"),
        ("shm://", "one name"),
        ("shm://a/b", "one name"),
        ("shm:///a/b", "one name"),
        ("shm://a%00b", "NUL"),
        ("shm://a?log=", "needs one value"),
        ("shm://a?log=/x&log=/y", "needs one value"),
        ("shm://a?lag=/x", "no option 'lag' for shm://; known: log"),
        ("shm://a#b", "no meaning"),
        ("log://var/x", "three slashes: log:///var/x"),
        ("log:///", "no directory"),
        ("tcp://host", "host and port"),
        ("tcp://host:99999", "Port out of range"),
        ("tcp://host:9100/a/b", "no slashes"),
        ("tcp://user@host:9100", "no meaning"),
    ],
)
def test_a_wrong_address_is_explained(text, why):
    with pytest.raises(ombus.BadAddress) as caught:
        StreamUri.parse(text)
    assert caught.value.code == -800
    assert why in str(caught.value)
    assert "use shm://name" in str(caught.value)


def test_an_address_is_text():
    with pytest.raises(TypeError, match="not bytes"):
        StreamUri.parse(b"shm://a")


@pytest.mark.parametrize("kind", [ombus.Producer, ombus.Consumer])
def test_what_this_build_cannot_open_is_said(kind):
    with pytest.raises(ombus.UnsupportedScheme, match="cannot open that kind of address yet"):
        kind("tcp://host:9100/x")


def test_where_a_log_is():
    assert StreamUri.parse("log:///var/x").log_dir == "/var/x"
    assert StreamUri.parse("shm://x?log=/var/x").log_dir == "/var/x"
    assert StreamUri.parse("shm://x").log_dir is None
    with pytest.raises(ombus.BadAddress, match="is a log, not a ring"):
        StreamUri.parse("log:///var/x").ring_name()
