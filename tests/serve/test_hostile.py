"""Requests that mean harm: what they cost is bounded by their size, and what they hold by time."""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import PATIENCE, Server, applicants, as_records, saved_explainer, server

pytest.importorskip("uvicorn", reason="the extra serve is not installed")

GOOD = as_records(applicants(1))[0]
LIMITED = ("--permitted", "age", "--connections", "20", "--workers", "1")
GET = b"GET /health/live HTTP/1.1\r\nhost: x\r\n"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    place = tmp_path_factory.mktemp("hostile") / "loans.gig"
    saved_explainer(place)
    with server(place, *LIMITED, "--patience", "1") as one:
        yield one


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[Server]:
    """A server that closes no idle connection while a test lasts, however slow the machine."""
    saved_explainer(tmp_path / "loans.gig")
    with server(tmp_path / "loans.gig", *LIMITED, "--patience", str(PATIENCE)) as one:
        yield one


def opened(running: Server, data: bytes, room: int = 0) -> socket.socket:
    """A connection over which some bytes were sent, with little room for an answer where that is asked."""
    made = socket.socket()
    if room:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
    made.settimeout(PATIENCE)
    made.connect(("127.0.0.1", running.port))
    made.sendall(data)
    return made


def test_an_object_of_many_keys_is_looked_through_once(running: Server) -> None:
    keys = ",".join(f'"{i}":0' for i in range(90_000))
    status, told = running.ask("POST", "/v1/explain", f'{{{keys},"89999":0}}'.encode())
    assert (status, told["code"]) == (400, "invalid_json")
    assert "'89999' occurs several times" in told["error"]


def test_an_answer_has_each_output_once(running: Server) -> None:
    outputs = [{"name": "credits"}] * 20_000
    status, told = running.ask("POST", "/v2/models/loans/infer", {"inputs": [], "outputs": outputs})
    assert (status, told["code"]) == (400, "invalid_request")
    assert "each once" in told["error"]


@pytest.mark.parametrize("where", ["datatype", "shape", "data"])
def test_nothing_deep_or_long_is_sent_back(running: Server, where: str) -> None:
    for sent in ("[" * 900 + "]" * 900, json.dumps("x" * 900_000)):
        tensor = {"name": "age", "datatype": "FP64", "shape": [1], "data": [1]} | {where: "HERE"}
        body = json.dumps({"inputs": [tensor]}).replace('"HERE"', sent if where != "data" else f"[{sent}]")
        status, told = running.ask("POST", "/v2/models/loans/infer", body.encode())
        assert (status, told["code"]) == (400, "invalid_request")
        assert len(told["error"]) < 1100
    for record in (GOOD | {"purpose": "x" * 900_000}, GOOD | {"k" * 900_000: 1}):
        status, told = running.ask("POST", "/v1/explain", {"records": [record]})
        assert status == 422
        assert len(told["error"]) < 1100


@pytest.mark.parametrize(("kind", "value"), [("INT8", 300), ("UINT8", -1), ("INT64", 2**63), ("INT32", 10**400)])
def test_a_tensor_holds_what_its_datatype_can(running: Server, kind: str, value: int) -> None:
    tensor = {"name": "age", "datatype": kind, "shape": [1], "data": [value]}
    status, told = running.ask("POST", "/v2/models/loans/infer", {"inputs": [tensor]})
    assert (status, told["code"]) == (400, "invalid_request")
    assert f"must be {kind} or null" in told["error"]


def test_numbers_that_would_be_others_are_refused(running: Server) -> None:
    told: dict[str, Any]
    for value in (2**53 + 1, -(2**60) - 1):
        status, told = running.ask("POST", "/v1/explain", {"records": [GOOD | {"age": value}]})
        assert (status, told["code"]) == (422, "invalid_record")
        assert f"column 'age' holds {value}" in told["error"]
    assert running.ask("POST", "/v1/explain", {"records": [GOOD | {"age": 2**60}]})[0] == 200
    body = json.dumps({"records": [GOOD], "ids": ["HERE"]}).replace('"HERE"', "1e999")
    status, told = running.ask("POST", "/v1/reasons", body.encode())
    assert (status, told["error"]) == (400, "ids must be texts or finite numbers.")


@pytest.mark.parametrize("head", [GET, b"POST /nothing HTTP/1.1\r\nhost: x\r\n", b"POST /v1/explain HTTP/1.1\r\n"])
def test_a_body_without_end_is_not_listened_to_for_ever(running: Server, head: bytes) -> None:
    """The first two are answered at once; what comes after was taken without end."""
    with opened(running, head + b"transfer-encoding: chunked\r\n\r\n") as client:
        assert ends(client, b"1\r\na\r\n", 0.1)


def test_empty_lines_do_not_keep_a_connection(running: Server) -> None:
    with opened(running, GET + b"\r\n") as client:
        assert ends(client, b"\r\n", 0.5)


def test_an_answer_that_nobody_reads_is_cut_off(running: Server) -> None:
    """Requests in a row whose answers fill every buffer on the way."""
    with opened(running, b"", room=4096) as client:
        assert ends(client, b"GET /v1/metadata HTTP/1.1\r\nhost: x\r\n\r\n" * 500, 0.0)
    before = time.monotonic()
    assert running.ask("GET", "/health/live")[0] == 200
    assert time.monotonic() - before < PATIENCE


def ends(client: socket.socket, more: bytes, pause: float) -> bool:
    """Whether the server ends a connection over which something is sent again and again."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        try:
            client.sendall(more)
        except (BrokenPipeError, ConnectionResetError):
            return True
        time.sleep(pause)
    return False


def test_a_client_that_sends_too_much_reads_why(running: Server) -> None:
    """Closed at once, the connection would be reset while the client still sends, and it would read nothing."""
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=PATIENCE)
    connection.request("POST", "/v1/explain", b"x" * 8_000_000)
    answer = connection.getresponse()
    assert (answer.status, json.loads(answer.read())["code"]) == (413, "too_large")
    connection.close()


def test_a_crowd_is_refused_in_the_usual_shape_and_probes_are_answered(patient: Server) -> None:
    # Heads that never end: uvicorn closes answered connections after five idle seconds, too soon on a busy machine.
    crowd = [opened(patient, GET) for _ in range(22)]
    status, told = patient.ask("POST", "/v1/explain", {"records": [GOOD]})
    assert (status, told["code"]) == (503, "overloaded")
    assert "20 connections" in told["error"]
    assert patient.ask("GET", "/health/live") == (200, {"live": True})
    for one in crowd:
        one.close()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and status != 200:
        status = patient.ask("POST", "/v1/explain", {"records": [GOOD]})[0]
    assert status == 200


def test_what_is_refused_before_it_is_a_request_is_counted(running: Server) -> None:
    running.raw(b"nonsense\r\n\r\n")
    running.raw(b"GET /half")
    page = running.ask("GET", "/metrics")[1]
    assert 'gigrad_refusals_total{code="slow_client"}' in page
    assert 'gigrad_requests_total{endpoint="other",status="400"}' in page
    assert running.stop()[0] == 0
