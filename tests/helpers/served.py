"""A real `gigrad serve` in a process of its own on the loopback address, and real clients."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from xgboost import XGBClassifier

import gigrad as gig

PATIENCE = 120
"""Seconds until a test gives up: far more than anything takes, on a machine with others on it."""


def applicants(rows: int, seed: int = 0) -> pd.DataFrame:
    """Amounts, counts, flags and categories, with missing values and ties."""
    rng = np.random.default_rng(seed)
    purposes, homes = ["car", "home", 'tea "set"'], ["own", "rent"]
    table = pd.DataFrame(
        {
            "amount": rng.integers(1, 50, rows) * 100.0,
            "age": rng.integers(18, 80, rows),
            "late": rng.integers(0, 4, rows),
            "owns_car": rng.random(rows) < 0.3,
            "purpose": pd.Categorical(rng.choice(purposes, rows), categories=purposes),
            "home": pd.Categorical(rng.choice(homes, rows), categories=homes),
        }
    )
    table.loc[rng.random(rows) < 0.1, "amount"] = None
    table.loc[rng.random(rows) < 0.1, "purpose"] = None
    return table


def saved_explainer(path: Path, references: int = 20, trees: int = 20) -> gig.Explainer:
    """An explainer of a lender's model at `path`, loaded again."""
    pytest.importorskip("xgboost", "3.1", reason="before 3.1 XGBoost kept no labels of categories in its models")
    X = applicants(500)
    bad = (X["late"] + (X["amount"].fillna(900) > 2500) + (X["home"] == "rent") > 2.5).astype(int)
    model = XGBClassifier(n_estimators=trees, max_depth=4, enable_categorical=True, n_jobs=1).fit(X, bad)
    risk = model.predict_proba(X)[:, 1]
    approved = gig.references.approved(X, risk, 0.5, higher_is_better=False)
    gig.Explainer(model, gig.references.sample(approved, references, seed=0), discrete=()).save(path)
    return gig.Explainer.load(path, n_threads=1)


def as_records(X: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON would hold them."""
    rows = [{str(k): v.item() if isinstance(v, np.generic) else v for k, v in r.items()} for _, r in X.iterrows()]
    return [{k: None if v != v else v for k, v in row.items()} for row in rows]


@contextmanager
def server(path: Path, *options: str) -> Iterator[Server]:
    """A server of the explainer at `path`; its end is waited for."""
    line = [sys.executable, "-m", "gigrad", "serve", str(path), "--port", "0", *options]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:"), process.communicate(timeout=PATIENCE)[1]
        yield Server(process, int(address.rpartition(":")[2]))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=PATIENCE)


class Server:
    """A running server."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process, self.port = process, port

    def connect(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of one request; a body of bytes is sent as it is."""
        connection = self.connect()
        try:
            return asked(connection, method, path, body)
        finally:
            connection.close()

    def raw(self, data: bytes, end: bool = False) -> bytes:
        """What comes back for some bytes; `end` says that no more will come."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as opened:
            opened.sendall(data)
            if end:
                opened.shutdown(socket.SHUT_WR)
            parts = []
            while part := opened.recv(65536):
                parts.append(part)
            return b"".join(parts)

    def stop(self) -> tuple[int, str]:
        """SIGTERM, and then its exit code and what it wrote to stderr."""
        self.process.send_signal(signal.SIGTERM)
        said = self.process.communicate(timeout=PATIENCE)[1]
        return self.process.returncode, said

    @property
    def alive(self) -> bool:
        return self.process.poll() is None


def asked(connection: http.client.HTTPConnection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Status and JSON of one request over an open connection."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, {"content-type": "application/json"} if data is not None else {})
    answer = connection.getresponse()
    text = answer.read()
    if answer.headers.get_content_type() == "application/json":
        return answer.status, json.loads(text)
    return answer.status, text.decode()
