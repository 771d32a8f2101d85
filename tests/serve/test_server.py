"""A real server process and real clients: no wrong answer, no crash, whatever is sent and however many ask."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from served import PATIENCE, Server, applicants, as_records, asked, saved_explainer, server

import gigrad as gig
from gigrad.serve.run import _listening

pytest.importorskip("uvicorn", reason="the extra serve is not installed")

RULES = ("--permitted", "age", "--max-rows", "8", "--max-body", "20000", "--patience", "3")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("served") / "my loans.gig"


@pytest.fixture(scope="module")
def explainer(place: Path) -> gig.Explainer:
    return saved_explainer(place)


@pytest.fixture(scope="module")
def running(place: Path, explainer: gig.Explainer) -> Iterator[Server]:
    with server(place, *RULES) as one:
        yield one


def expected(explainer: gig.Explainer, record: dict[str, Any]) -> dict[str, Any]:
    e = explainer.one(record)
    return {
        "prediction": e.predictions[0],
        "base": e.base_values[0],
        "credits": dict(zip(e.feature_names, e.values[0].tolist(), strict=True)),
        "gap": e.gap[0],
        "error": e.error[0],
    }


def test_credits_are_those_of_the_library_to_the_bit(running: Server, explainer: gig.Explainer) -> None:
    records = as_records(applicants(8, seed=3))
    status, told = running.ask("POST", "/v1/explain", {"records": records, "ids": list("abcdefgh")})
    assert status == 200
    for record, one, name in zip(records, told["explanations"], "abcdefgh", strict=True):
        assert one == expected(explainer, record) | {"id": name}


def test_reasons_are_those_of_the_library(running: Server, explainer: gig.Explainer) -> None:
    records = as_records(applicants(8, seed=4))
    status, told = running.ask("POST", "/v1/reasons", {"records": records})
    assert status == 200
    assert told["reference"] == explainer.provenance["reference"]["note"]
    for number, (record, one) in enumerate(zip(records, told["applicants"], strict=True)):
        rules: dict[str, Any] = {"permitted": ["age"], "ranges": explainer.credit_ranges(), "higher_is_better": False}
        mine = gig.reasons(explainer.one(record), **rules)[0]
        assert one["id"] == number
        assert [(r["rank"], r["feature"], r["credit"], r["share"], r["value"]) for r in one["reasons"]] == [
            (r.rank, r.feature, r.credit, r.share, r.value) for r in mine.reasons
        ]
        assert (one["prediction"], one["shortfall"], one["settled"]) == (mine.prediction, mine.shortfall, mine.settled)
    assert any(one["reasons"] for one in told["applicants"])


def test_health_metadata_and_metrics(running: Server, explainer: gig.Explainer) -> None:
    for path in ("/health/live", "/health/ready", "/v2/health/live", "/v2/health/ready"):
        assert running.ask("GET", path)[0] == 200
    status, told = running.ask("GET", "/v1/metadata")
    assert (status, told["name"], told["reasons"]) == (200, "my-loans", True)
    assert [c["name"] for c in told["columns"]] == list(explainer.reference.names)
    assert told["columns"][5]["labels"] == ["own", "rent"]
    assert told["provenance"]["output"] == explainer.provenance["output"]
    before = counted(running, 'gigrad_rows_total{endpoint="explain"}')
    running.ask("POST", "/v1/explain", {"records": as_records(applicants(3))})
    status, page = running.ask("GET", "/metrics")
    assert status == 200
    assert counted(running, 'gigrad_rows_total{endpoint="explain"}') == before + 3
    for line in page.splitlines():  # the text format: a name, labels, one number
        assert line.startswith("# ") or float(line.rpartition(" ")[2]) >= 0


def counted(running: Server, name: str) -> float:
    page = running.ask("GET", "/metrics")[1]
    return next((float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(name)), 0.0)


def test_many_clients_at_once_get_their_own_answers(running: Server, explainer: gig.Explainer) -> None:
    records = as_records(applicants(25, seed=5))
    answers = [expected(explainer, record) for record in records]
    wrong: list[Any] = []

    def client(number: int) -> None:
        connection = running.connect()
        for i in range(number, number + 30):
            status, told = asked(connection, "POST", "/v1/explain", {"records": [records[i % 25]]})
            if (status, told) != (200, {"explanations": [answers[i % 25]]}):
                wrong.append((status, told))
        connection.close()

    threads = [threading.Thread(target=client, args=(n,)) for n in range(0, 80, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert wrong == []


GOOD = as_records(applicants(1))[0]


DEEP = b"[" * 6000 + b"]" * 6000


def parses(text: bytes) -> bool:
    """Whether this Python's parser reads so deep: 3.11 does not, 3.14 does."""
    try:
        json.loads(text)
    except RecursionError:
        return False
    return True


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "invalid_json"),
        (b"{", 400, "invalid_json"),
        (b"\xff\xfe", 400, "invalid_json"),
        (b"[" * 15000, 400, "invalid_json"),
        (b'{"records": ' + DEEP + b"}", *((422, "invalid_record") if parses(DEEP) else (400, "invalid_json"))),
        (json.dumps({"records": [GOOD | {"age": float("nan")}]}).encode(), 400, "invalid_json"),
        (json.dumps({"records": [GOOD | {"age": float("inf")}]}).encode(), 400, "invalid_json"),
        (b'{"records": [], "records": []}', 400, "invalid_json"),
        (b'{"records": [{"age": ' + b"9" * 5000 + b"}]}", 400, "invalid_json"),
        ({"records": [GOOD | {"age": 10**320}]}, 422, "invalid_record"),
        (json.dumps({"records": [GOOD]}).replace('"age": ', '"age": 1e999, "x": ').encode(), 422, "invalid_record"),
        ([GOOD], 400, "invalid_request"),
        ({"records": GOOD}, 400, "invalid_request"),
        ({"records": []}, 400, "invalid_request"),
        ({"records": [GOOD], "path": "/etc/passwd"}, 400, "invalid_request"),
        ({"records": [GOOD], "ids": [1, 2]}, 400, "invalid_request"),
        ({"records": [GOOD], "ids": [{}]}, 400, "invalid_request"),
        ({"records": [None]}, 422, "invalid_record"),
        ({"records": [{}]}, 422, "invalid_record"),
        ({"records": [GOOD | {"more": 1}]}, 422, "invalid_record"),
        ({"records": [GOOD | {"age": "41"}]}, 422, "invalid_record"),
        ({"records": [GOOD | {"purpose": "yacht"}]}, 422, "invalid_record"),
        ({"records": [GOOD | {"purpose": ["car"]}]}, 422, "invalid_record"),
        ({"records": [GOOD] * 9}, 413, "too_large"),
        (b" " * 20001, 413, "too_large"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/v1/explain", "/v1/reasons"])
def test_what_cannot_be_used_is_refused_in_one_shape(
    running: Server, path: str, body: Any, status: int, code: str
) -> None:
    got, told = running.ask("POST", path, body)
    assert (got, told["code"]) == (status, code)
    assert set(told) == {"error", "code"}
    assert told["error"].endswith((".", ")", "."))
    assert running.ask("POST", path, {"records": [GOOD]})[0] == 200


def test_the_record_that_is_wrong_is_named(running: Server) -> None:
    told = running.ask("POST", "/v1/explain", {"records": [GOOD, GOOD | {"age": "x"}]})[1]
    assert told["error"] == "Record 1: The record must hold a number for 'age'; got the text 'x'."


def test_paths_that_are_not_there_and_other_methods(running: Server) -> None:
    for path in ("/", "/v1", "/v1/explain/../../../etc/passwd", "/v2/models/other", "/v2/models/my-loans/versions/9"):
        assert running.ask("GET", path)[0] == 404
    assert running.ask("GET", "/v1/explain") == (
        405,
        {"error": "The method must be POST; got GET.", "code": "method_not_allowed"},
    )
    assert running.ask("DELETE", "/v1/metadata")[0] == 405


def test_clients_that_dawdle_or_babble_are_sent_away(running: Server) -> None:
    head = b"POST /v1/explain HTTP/1.1\r\nhost: x\r\n"
    cases = {
        b"": b"408",  # connects and is silent
        b"POST /v1/expl": b"408",  # slow-loris: half a head
        head + b"content-length: 500\r\n\r\n{": b"408",  # half a body
        head + b"transfer-encoding: chunked\r\n\r\n5\r\n{": b"408",
        b"\x16\x03\x01\x02\x00nonsense\r\n\r\n": b"400",
        head + b"content-length: -5\r\n\r\n": b"400",
        head + b"content-length: 5\r\ncontent-length: 6\r\n\r\n{}": b"400",
        head + b"content-length: 99999999999\r\n\r\n": b"413",
        head + b"x: " + b"y" * 40000: b"431",
        head + b"".join(b"x%d: y\r\n" % i for i in range(9000)): b"431",
    }
    found: dict[bytes, bytes] = {}
    threads = [threading.Thread(target=lambda d=data: found.update({d: running.raw(d)})) for data in cases]
    for thread in threads:
        thread.start()
    assert running.ask("POST", "/v1/explain", {"records": [GOOD]})[0] == 200  # while they are at it
    for thread in threads:
        thread.join(PATIENCE)
    for data, status in cases.items():
        assert found[data][9:12] == status, (data[:60], found[data][:200])
        assert set(json.loads(found[data].partition(b"\r\n\r\n")[2])) == {"error", "code"}
    assert running.raw(head + b"content-length: 50\r\n\r\n{", end=True)[9:12] in (b"", b"400", b"408")  # it hung up


def test_clients_that_hang_up_are_forgotten(running: Server) -> None:
    body = json.dumps({"records": [GOOD]}).encode()
    for part in (b"POST /v1", b"POST /v1/explain HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body)):
        for rest in (b"", body[:20], body):
            with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as opened:
                opened.sendall(part + rest)
    assert running.ask("POST", "/v1/explain", {"records": [GOOD]})[0] == 200
    assert running.alive


def test_a_head_and_a_body_in_pieces_are_one_request(running: Server, explainer: gig.Explainer) -> None:
    body = json.dumps({"records": [GOOD]}).encode()
    whole = (
        b"POST /v1/explain HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    )
    with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as opened:
        for i in range(0, len(whole), 37):
            opened.sendall(whole[i : i + 37])
        answer = b""
        while part := opened.recv(65536):
            answer += part
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"explanations": [expected(explainer, GOOD)]}


def test_overload_is_refused_and_every_answer_is_right(tmp_path: Path) -> None:
    explainer = saved_explainer(tmp_path / "slow.gig", references=200, trees=100)
    records = as_records(applicants(20, seed=7))
    right = {"explanations": [expected(explainer, record) for record in records]}
    statuses: Counter[int] = Counter()
    wrong: list[Any] = []

    def client(one: Server) -> None:
        for _ in range(4):
            status, told = one.ask("POST", "/v1/explain", {"records": records})
            statuses[status] += 1
            if told != right and (status, told.get("code")) != (503, "overloaded"):
                wrong.append((status, told))

    with server(tmp_path / "slow.gig", "--workers", "1", "--queue", "1", "--timeout", "100") as one:
        threads = [threading.Thread(target=client, args=(one,)) for _ in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert wrong == []
        assert statuses[200] > 0
        assert statuses[503] > 0
        assert sum(statuses.values()) == 48
        assert one.ask("POST", "/v1/explain", {"records": records}) == (200, right)
        assert counted(one, "gigrad_requests_in_progress ") == 0


def test_what_takes_too_long_is_given_up(tmp_path: Path) -> None:
    saved_explainer(tmp_path / "slow.gig", references=200, trees=100)
    records = as_records(applicants(100, seed=7))
    with server(tmp_path / "slow.gig", "--workers", "1", "--timeout", "0.01", "--permitted", "age") as one:
        status, told = one.ask("POST", "/v1/explain", {"records": records})
        assert (status, told["code"]) == (504, "timeout")
        assert one.ask("GET", "/health/ready")[0] == 200
        code, said = one.stop()
        assert (code, said) == (0, "")


def test_sigterm_answers_what_was_taken_and_exits_with_0(tmp_path: Path) -> None:
    explainer = saved_explainer(tmp_path / "slow.gig", references=200, trees=100)
    records = as_records(applicants(60, seed=8))
    with server(tmp_path / "slow.gig", "--workers", "1", "--permitted", "age") as one:
        connection = one.connect()
        connection.request("POST", "/v1/explain", json.dumps({"records": records}))
        while not counted(one, "gigrad_requests_in_progress "):
            pass
        code_and_text: list[Any] = []
        stopper = threading.Thread(target=lambda: code_and_text.append(one.stop()))
        stopper.start()
        answer = connection.getresponse()
        assert answer.status == 200
        told = json.loads(answer.read())["explanations"]
        assert told == [expected(explainer, record) for record in records]
        connection.close()
        stopper.join(PATIENCE)
        assert code_and_text == [(0, "")]
        with pytest.raises(ConnectionRefusedError):
            one.ask("GET", "/health/live")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--port", "99999"), "cannot listen at 127.0.0.1 port 99999"),
        (("--queue", "-1"), "queue must be"),
        (("--name", "a/b"), "name must be letters"),
        (("--timeout", "0"), "timeout must be a number of seconds"),
        (("--higher-is-better",), "higher_is_better"),
    ],
)
def test_what_cannot_be_served_is_said_in_one_sentence(
    place: Path, explainer: gig.Explainer, options: tuple[str, ...], said: str
) -> None:
    with pytest.raises(AssertionError, match=said), server(place, *options):
        raise RuntimeError("it should not have started")


def test_only_explainers_are_served(tmp_path: Path) -> None:
    (tmp_path / "x.gig").write_bytes(b"no zip")
    with pytest.raises(AssertionError, match=r"not a whole \.gig file"), server(tmp_path / "x.gig"):
        raise RuntimeError("it should not have started")
    with pytest.raises(AssertionError, match=r"a \.gig file; got"), server(tmp_path / "model.json"):
        raise RuntimeError("it should not have started")


def test_answers_do_not_wait_for_acknowledgements() -> None:
    """asyncio itself says so of a connection that the server's socket accepts: TCP_NODELAY is set."""
    listening = _listening("127.0.0.1", 0)

    async def accepted() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def client(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        async with await asyncio.start_server(client, sock=listening):
            await asyncio.open_connection(*listening.getsockname())
            return await found

    assert asyncio.run(accepted())
