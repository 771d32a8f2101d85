"""A headless Chromium for tests, driven through chromedriver's HTTP interface."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip


def why_not() -> str:
    """Why no browser can be opened here; "" where one can."""
    absent = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"{' and '.join(absent)} not found" if absent else ""


class Browser:
    """One window; use it in a `with` statement."""

    def __init__(self, profile: Path, width: int = 1280, height: int = 900) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.driver = subprocess.Popen(
            [shutil.which("chromedriver") or "chromedriver", f"--port={port}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.at = f"http://127.0.0.1:{port}"
        options = {"args": [*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"],
                   "binary": shutil.which("chromium")}  # fmt: skip
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        try:
            self._wait_until_ready()
            session = self._ask("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        except BaseException:
            self.driver.kill()
            raise
        self.at += f"/session/{session['sessionId']}"
        self.open("about:blank")  # the page a new window shows asks for things of its own
        self.log("performance")
        self.log("browser")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._ask("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait(10)

    def show(self, width: int, *, dark: bool = False) -> None:
        """Be a window of another width (a telephone's below 500 pixels), in light or dark colours, from now on."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        for command, given in (
            ("Emulation.setDeviceMetricsOverride", size),
            ("Emulation.setEmulatedMedia", {"features": scheme}),
        ):
            self._ask("POST", "/goog/cdp/execute", {"cmd": command, "params": given})

    def open(self, url: str) -> None:
        self._ask("POST", "/url", {"url": url})

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script returns."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def log(self, kind: str) -> list[dict[str, Any]]:
        """The entries of the "browser" console or of the "performance" log since the last call."""
        return list(self._ask("POST", "/se/log", {"type": kind}))

    def requests(self) -> list[str]:
        """The addresses that the page asked for."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def click(self, selector: str) -> None:
        """A real click, at the middle of the first element that matches."""
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        (element,) = found.values()
        self._ask("POST", f"/element/{element}/click", {})

    def type(self, selector: str, text: str) -> None:
        """Keys typed into the first element that matches."""
        found = self._ask("POST", "/element", {"using": "css selector", "value": selector})
        (element,) = found.values()
        self._ask("POST", f"/element/{element}/value", {"text": text})

    def _wait_until_ready(self) -> None:
        for _ in range(200):
            try:
                if self._ask("GET", "/status")["ready"]:
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.05)
        raise RuntimeError("chromedriver did not start")

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.at + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["value"]
