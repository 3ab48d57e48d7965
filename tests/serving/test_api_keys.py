"""ApiKeys, and the machines that need none."""

import pytest

from cptuning.errors import CPTuningError
from cptuning.serving.api_keys import VARIABLE, ApiKeys, is_loopback

KEY, OTHER = "k" * 16, "an other key of 24 chars"


def test_each_key_opens_and_nothing_else_does():
    keys = ApiKeys([KEY, OTHER])
    assert keys.accepts(KEY)
    assert keys.accepts(OTHER)
    for wrong in ("", KEY[:-1], KEY + "k", KEY.upper(), f"{KEY},{OTHER}", "\udcff" * 16, "ключ"):
        assert not keys.accepts(wrong)


def test_without_keys_no_key_opens():
    assert not ApiKeys([]).accepts("")


def test_keys_come_from_the_environment(monkeypatch):
    monkeypatch.setenv(VARIABLE, f" {KEY}, {OTHER},,")
    keys = ApiKeys.from_environment()
    assert keys.accepts(KEY)
    assert keys.accepts(OTHER)
    assert not keys.accepts("")
    monkeypatch.setenv(VARIABLE, " , ")
    assert not ApiKeys.from_environment()


def test_a_key_that_can_be_guessed_is_refused():
    with pytest.raises(CPTuningError, match="fewer than 16 characters"):
        ApiKeys([KEY, "short"])


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "2001:db8::1"])
def test_other_machines_need_a_key(host):
    assert not is_loopback(host)
    with pytest.raises(CPTuningError, match="can be reached from other machines"):
        ApiKeys([]).require_for(host)
    ApiKeys([KEY]).require_for(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "localhost", "::1"])
def test_this_machine_needs_none(host):
    ApiKeys([]).require_for(host)


def test_a_host_that_is_none_is_named():
    with pytest.raises(CPTuningError, match=r"no address 'no\.such\.host\.invalid'"):
        ApiKeys([]).require_for("no.such.host.invalid")
