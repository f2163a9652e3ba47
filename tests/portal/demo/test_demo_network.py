"""The addresses of a demo, on this machine and for a phone in the same network."""

import os
import socket

import pytest

from portal.demo import terminal


@pytest.fixture
def in_a_network(monkeypatch):
    """This machine has the address 192.168.7.20 in its network; nothing is really asked."""
    monkeypatch.setattr(socket.socket, "connect", lambda *_: None)
    monkeypatch.setattr(socket.socket, "getsockname", lambda _: ("192.168.7.20", 40000))


@pytest.fixture
def environment(monkeypatch):
    monkeypatch.setattr(os, "environ", {"PORTAL_ALLOWED_HOSTS": "localhost"})
    return os.environ


def test_network_address_is_that_of_this_machine_for_others(in_a_network):
    assert terminal.network_address("0.0.0.0:8000") == "192.168.7.20:8000"


def test_answer_to_network_admits_the_address_that_a_phone_uses(in_a_network, environment):
    terminal.answer_to_network("0.0.0.0:8000")
    assert environment["PORTAL_SITE_URL"] == "http://127.0.0.1:8000"
    assert environment["PORTAL_ALLOWED_HOSTS"].split(",")[-1] == "192.168.7.20"
    assert "127.0.0.1" in environment["PORTAL_ALLOWED_HOSTS"].split(",")
