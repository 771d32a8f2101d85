"""One applicant, now: the time of one record in the library and behind the server, beside a bare predict.

    python serve.py [--quick]        processor time of one record, the first load, latencies for 1, 4 and 16 clients
    python serve.py --soak 100000    so many requests to one server: every answer compared, memory along the way

The table is made up: 42 columns, of which 29 are categories of 2 to 10 labels with one that most rows have, counts,
flags and amounts, some missing; XGBoost, 100 trees of depth 4, against 100 references. The server is a process of its
own with one worker; clients are threads of another process on the same machine, on the loopback address, and take
processor time from it. Results go to results/serve.json and results/serve.md.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xgboost
from pages import where
from run import HERE, machine

import gigrad as gig
from gigrad._io.tables import read_record
from gigrad.graph import value_of
from gigrad.serve import Limits, application
from gigrad.serve.app import Application, Route
from gigrad.serve.run import run as serve_it
from gigrad.serve.service import Answered, dumped, parsed

CATEGORIES, NUMBERS = 29, 13
CLIENTS = (1, 4, 16)


def applicants(rows: int, seed: int = 0) -> tuple[pd.DataFrame, Any]:
    """The table, and who failed to pay."""
    rng = np.random.default_rng(seed)
    data: dict[str, Any] = {}
    for j in range(CATEGORIES):
        labels = [f"label {i}" for i in range(2 + j % 9)]
        share = np.array([0.7] + [0.3 / (len(labels) - 1)] * (len(labels) - 1))
        data[f"category{j}"] = pd.Categorical(rng.choice(labels, rows, p=share), categories=labels)
        if j % 4 == 0:
            data[f"category{j}"][rng.random(rows) < 0.05] = None
    for j in range(NUMBERS):
        kind = (rng.normal(size=rows) * 1000, rng.integers(0, 12, rows), rng.integers(0, 2, rows))[j % 3]
        data[f"number{j}"] = np.where(rng.random(rows) < 0.1, np.nan, kind) if j == 0 else kind
    X = pd.DataFrame(data)
    score = sum((X[f"category{j}"].cat.codes > 0) * (1 + j % 3) for j in range(0, CATEGORIES, 3))
    return X, (score + 0.3 * X["number1"] + rng.normal(size=rows) > 8).astype(int)


def as_record(row: Any) -> dict[str, Any]:
    cells = {str(k): v.item() if isinstance(v, np.generic) else v for k, v in row.items()}
    return {k: None if v != v else v for k, v in cells.items()}


def in_turns(work: dict[str, Callable[[], object]], repeats: int) -> dict[str, dict[str, float]]:
    """Least and median processor time of each, in milliseconds, taken in turns."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(repeats):
        for name, function in work.items():
            function()  # others have emptied the caches in between
            began = time.process_time()
            function()
            taken[name].append((time.process_time() - began) * 1e3)
    return {n: {"least": round(min(t), 3), "median": round(float(np.median(t)), 3)} for n, t in taken.items()}


def one_record(folder: Path, model: Any, X: pd.DataFrame, repeats: int) -> dict[str, Any]:
    """Processor time of one record in each space: a frame, a mapping, with the model and without."""
    out: dict[str, Any] = {}
    frame, record = X.iloc[[1500]], as_record(X.iloc[1500])
    for space, output in (("margin", "margin"), ("probability", None)):
        live = gig.Explainer(model, X.iloc[:100], output=output, n_threads=1)
        live.save(folder / f"{space}.gig")
        portable = gig.Explainer.load(folder / f"{space}.gig", n_threads=1)
        whole = live(X.iloc[1495:1505])
        for e in (live(frame), live.one(record), portable(frame), portable.one(record)):
            assert (e.values[0] == whole.values[5]).all(), "not the bits of the table"

        def own(margin: bool = output is not None) -> object:
            return model.predict(frame, output_margin=True) if margin else model.predict_proba(frame)

        out[space] = in_turns(
            {
                "the model's own predict of the row, a frame": own,
                "explainer(frame)": lambda live=live: live(frame),
                "explainer.one(record)": lambda live=live: live.one(record),
                "portable explainer(frame)": lambda portable=portable: portable(frame),
                "portable explainer.one(record)": lambda portable=portable: portable.one(record),
            },
            repeats if output else max(repeats // 4, 3),
        )
        out[space]["error"] = float(whole.error[5])
    return out


def first_load(path: Path, repeats: int) -> dict[str, float]:
    """Processor time of a new process until NumPy is there, until an explainer is, and for the next one."""
    code = (
        "import sys, time; t = [time.process_time()]; import numpy, narwhals; t.append(time.process_time()); "
        "import gigrad; gigrad.Explainer.load(sys.argv[1]); t.append(time.process_time()); "
        "gigrad.Explainer.load(sys.argv[1]); t.append(time.process_time()); print(*t)"
    )
    with tempfile.TemporaryDirectory() as cache:  # bytecode, as an installed package has it
        here = {**os.environ, "PYTHONPYCACHEPREFIX": cache}
        here.pop("PYTHONDONTWRITEBYTECODE", None)
        line = [sys.executable, "-c", code, str(path)]
        runs = [subprocess.run(line, env=here, capture_output=True, text=True, check=True) for _ in range(repeats + 1)]
    marks = np.array([[float(x) for x in run.stdout.split()] for run in runs[1:]])
    least = np.diff(marks, axis=1).min(axis=0)
    names = ("import of numpy and narwhals", "import of gigrad and first load", "next load")
    return dict(zip(names, (least * 1e3).round(1).tolist(), strict=True)) | {
        "all of it": round(float((marks[:, 2] - marks[:, 0]).min() * 1e3), 1)
    }


# ---------------------------------------------------------------- the server, and clients


def with_predict(app: Application, model: Any) -> Application:
    """The same server with two paths that predict and do nothing else."""
    explainer = app.service.explainer
    graph, node, names = explainer.scorer.graph, explainer.scorer.node, explainer.reference.names

    def graph_predict(body: bytes) -> Answered:
        (record,) = parsed(body)["records"]
        rows = read_record(record, graph, names)
        return Answered(dumped({"prediction": float(value_of(node, {graph.input: rows.matrix})[0, 0])}), 1)

    types = {name: pd.CategoricalDtype(c.labels) for name, c in zip(names, graph.columns, strict=True) if c.labels}

    def model_predict(body: bytes) -> Answered:
        (record,) = parsed(body)["records"]
        frame = pd.DataFrame([record]).astype(dict.fromkeys(set(names) - set(types), float) | types)[list(names)]
        return Answered(dumped({"prediction": float(model.predict(frame, output_margin=True)[0])}), 1)

    app.routes["v1/predict"] = Route("predict", "POST", work=graph_predict)
    app.routes["v1/model"] = Route("model", "POST", work=model_predict)
    return app


def serve(folder: Path) -> None:
    """The server's process."""
    model = xgboost.XGBClassifier(n_jobs=1)
    model.load_model(folder / "model.json")
    explainer = gig.Explainer.load(folder / "margin.gig", n_threads=1)
    app = application(explainer, "loans", Limits(workers=1, queue=64), higher_is_better=False)
    serve_it(with_predict(app, model), port=0)


def requested(port: int, path: str, body: bytes) -> bytes:
    return b"POST %s HTTP/1.1\r\nhost: 127.0.0.1:%d\r\ncontent-length: %d\r\n\r\n" % (
        path.encode(), port, len(body)) + body  # fmt: skip


def answer(opened: socket.socket) -> bytes:
    """The body of the next answer, of status 200."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += opened.recv(65536)
    head, _, body = data.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), data
    size = int(head.lower().partition(b"content-length:")[2].split()[0])
    while len(body) < size:
        body += opened.recv(65536)
    return body


def clients(port: int, path: str, bodies: list[bytes], right: list[bytes], count: int, total: int) -> list[float]:
    """Seconds of each of `total` requests by `count` clients at once; every answer is compared with the right one."""
    seconds: list[float] = []
    wrong: list[bytes] = []

    def client(number: int) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=120) as opened:
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for i in range(number, total, count):
                began = time.perf_counter()
                opened.sendall(requested(port, path, bodies[i % len(bodies)]))
                told = answer(opened)
                seconds.append(time.perf_counter() - began)
                if right and told != right[i % len(right)]:
                    wrong.append(told)

    threads = [threading.Thread(target=client, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, f"{len(wrong)} wrong answers, such as {wrong[0]!r}"
    assert len(seconds) == total
    return seconds


class Server:
    """A server in a process of its own: `gigrad serve` itself, or the one that predicts, too."""

    def __init__(self, folder: Path, predicts: bool) -> None:
        itself = ["-m", "gigrad", "serve", str(folder / "margin.gig"), "--port", "0", "--workers", "1"]
        line = [sys.executable, *([__file__, "--server", str(folder)] if predicts else itself)]
        self.process = subprocess.Popen(line, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline().rpartition(":")[2])

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(60)

    @property
    def memory(self) -> float:
        """MB that the process holds."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)

    @property
    def processor(self) -> float:
        """Seconds of processor time so far."""
        told = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(told[11]) + int(told[12])) / os.sysconf("SC_CLK_TCK")


def asked_with(folder: Path, X: pd.DataFrame, rows: int) -> tuple[list[bytes], list[bytes]]:
    """The bodies of requests for some records, and the right answers of /v1/explain."""
    service = application(gig.Explainer.load(folder / "margin.gig", n_threads=1), "loans").service
    bodies = [json.dumps({"records": [as_record(X.iloc[i])]}).encode() for i in range(200, 200 + rows)]
    return bodies, [service.explain(body).body for body in bodies]


PATHS = {
    "/v1/explain": "explain",
    "/v1/reasons": "reasons",
    "/v1/predict": "the graph's prediction alone",
    "/v1/model": "XGBoost's own predict of a frame",
}


def latencies(folder: Path, X: pd.DataFrame, requests: int, rounds: int = 5) -> list[dict[str, Any]]:
    """Every path is asked in turns, so that whatever else the machine does falls on all of them."""
    bodies, right = asked_with(folder, X, 50)
    out = []
    with Server(folder, predicts=True) as server:
        for count in CLIENTS:
            seconds: dict[str, list[float]] = {path: [] for path in PATHS}
            wall, used = dict.fromkeys(PATHS, 0.0), dict.fromkeys(PATHS, 0.0)
            for _ in range(rounds):
                for path in PATHS:
                    some = max(requests // rounds // (10 if path == "/v1/model" else 1), count)
                    clients(server.port, path, bodies, [], 1, 5)
                    before, began = server.processor, time.perf_counter()
                    answers = right if path == "/v1/explain" else []
                    seconds[path] += clients(server.port, path, bodies, answers, count, some)
                    wall[path] += time.perf_counter() - began
                    used[path] += server.processor - before
            for path, about in PATHS.items():
                total = len(seconds[path])
                p50, p99 = (round(float(v) * 1e3, 2) for v in np.percentile(seconds[path], [50, 99]))
                line = {"what": about, "clients": count, "requests": total, "p50": p50, "p99": p99}
                line |= {"per_second": round(total / wall[path]), "processor": round(used[path] / total * 1e3, 2)}
                out.append(line)
                print(line, flush=True)
    return out


def soak(folder: Path, X: pd.DataFrame, total: int) -> dict[str, Any]:
    """Many requests by four clients; the server's memory before, along the way and after."""
    bodies, right = asked_with(folder, X, 500)
    steps = 20
    began = time.perf_counter()
    with Server(folder, predicts=False) as server:
        memory = [server.memory]
        for _ in range(steps):
            clients(server.port, "/v1/explain", bodies, right, 4, total // steps)
            memory.append(server.memory)
            print(memory[-1], "MB", flush=True)
    return {"requests": total, "wrong": 0, "clients": 4, "references": 10, "megabytes": memory,
            "minutes": round((time.perf_counter() - began) / 60, 1)}  # fmt: skip


def page(record: dict[str, Any]) -> str:
    lines = ["| processor time of one record, ms, least (median) | margin | probability |", "|---|---|---|"]
    one = record["one"]
    for name in one["margin"]:
        if name != "error":
            cells = [f"{one[s][name]['least']:.2f} ({one[s][name]['median']:.2f})" for s in ("margin", "probability")]
            lines.append(f"| {name} | {cells[0]} | {cells[1]} |")
    lines += ["", "| a new process, ms of processor time |  |", "|---|---|"]
    lines += [f"| {name} | {value:.1f} |" for name, value in record["load"].items()]
    lines += [
        "",
        "| behind the server, one worker | clients | p50, ms | p99, ms | a second | server's processor time, ms |",
    ]
    lines += ["|---|---|---|---|---|---|"]
    lines += [
        f"| {x['what']} | {x['clients']} | {x['p50']} | {x['p99']} | {x['per_second']} | {x['processor']} |"
        for x in record["latencies"]
    ]
    if "soak" in record:
        s = record["soak"]
        after = s["megabytes"][1:]
        told = f"{s['requests']:,} requests by {s['clients']} clients to `gigrad serve`, {s['references']} references: "
        told += f"{s['wrong']} wrong answers; memory {s['megabytes'][0]} MB at the start, {after[0]} MB after a "
        told += f"twentieth of them, {after[-1]} MB at the end (at most {max(after)} MB)."
        lines += ["", told]
    return "\n".join([*lines, "", where(record["machine"])]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--soak", type=int)
    parser.add_argument("--folder", type=Path, default=HERE / "results")
    parser.add_argument("--server", type=Path)
    told = parser.parse_args()
    if told.server:
        serve(told.server)
        return
    X, bad = applicants(3000)
    model = xgboost.XGBClassifier(n_estimators=100, max_depth=4, enable_categorical=True, n_jobs=1).fit(X, bad)
    file = told.folder / "serve.json"
    record = json.loads(file.read_text()) if file.exists() else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model.save_model(folder / "model.json")
        references = X.iloc[: 10 if told.soak else 100]
        gig.Explainer(model, references, output="margin", n_threads=1).save(folder / "margin.gig")
        if told.soak:
            record["soak"] = soak(folder, X, told.soak)
        else:
            record["machine"] = machine()
            record["one"] = one_record(folder, model, X, 3 if told.quick else 25)
            record["load"] = first_load(folder / "margin.gig", 1 if told.quick else 6)
            record["latencies"] = latencies(folder, X, *((20, 1) if told.quick else (600, 3)))
    file.write_text(json.dumps(record, indent=1) + "\n")
    if "latencies" in record:
        (told.folder / "serve.md").write_text(page(record))


if __name__ == "__main__":
    main()
