"""Error responses, all of the form `{"error": "a sentence", "code": "a word for programs"}`, which KServe expects."""

from __future__ import annotations

import json
from http import HTTPStatus

STATUS = {
    "invalid_json": 400,
    "invalid_request": 400,
    "not_found": 404,
    "method_not_allowed": 405,
    "slow_client": 408,
    "too_large": 413,
    "invalid_record": 422,
    "head_too_large": 431,
    "internal": 500,
    "overloaded": 503,
    "stopping": 503,
    "timeout": 504,
}
"""The code of every error response, and its HTTP status."""


_LONGEST = 1000


class Problem(Exception):
    """A request that is refused; `code` is a key of STATUS."""

    def __init__(self, code: str, sentence: str) -> None:
        if len(sentence) > _LONGEST:  # the message may quote a megabyte of the request
            sentence = f"{sentence[: _LONGEST // 2]} ... {sentence[-_LONGEST // 4 :]}"
        super().__init__(sentence)
        self.code, self.status = code, STATUS[code]

    @property
    def body(self) -> bytes:
        """The body of the response."""
        return json.dumps({"error": str(self), "code": self.code}).encode()

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """Additional headers of the response: Retry-After where a retry makes sense."""
        return [(b"retry-after", b"1")] if self.status == 503 else []

    @property
    def response(self) -> bytes:
        """The whole HTTP response as bytes, for a connection whose request was not read completely."""
        head = [
            f"HTTP/1.1 {self.status} {HTTPStatus(self.status).phrase}", "content-type: application/json",
            f"content-length: {len(self.body)}", "connection: close",
        ]  # fmt: skip
        return "\r\n".join([*head, "", ""]).encode() + self.body
