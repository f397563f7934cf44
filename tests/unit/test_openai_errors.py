"""What refusals mean, and when to try again: tables."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.model.base import ContextOverflow, ModelError
from hermes_trio.model.errors import MAX_WORDS, classify, error_in, retry_after, retry_delay


@pytest.mark.parametrize(
    ("status", "error", "retryable"),
    [
        (400, {"type": "invalid_request_error", "code": "invalid_value"}, False),
        (401, {"code": "invalid_api_key"}, False),
        (402, {"code": 402}, False),
        (403, {}, False),
        (404, {"code": "model_not_found"}, False),
        (408, {}, True),
        (409, {}, True),
        (422, None, False),
        (429, {"code": "rate_limit_exceeded"}, True),
        (429, {"code": "insufficient_quota"}, False),
        (429, {"type": "insufficient_quota", "code": None}, False),
        (429, {"message": "Rate limit on tokens: the context length of your requests"}, True),
        (500, {"type": "server_error"}, True),
        (503, {"code": 503, "type": "unavailable_error"}, True),
        (529, None, True),
    ],
)
def test_statuses(status: int, error: dict[str, Any] | None, retryable: bool) -> None:
    """Overload, timeouts and faults of the server may pass; refusals and an empty purse do not."""
    made = classify(status, error)
    assert made.retryable is retryable
    assert not isinstance(made, ContextOverflow)
    assert f"status {status}" in str(made)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": "context_length_exceeded"}),
        (400, {"code": 400, "type": "exceed_context_size_error", "n_ctx": 10}),
        (400, {"message": "This model's maximum context length is 8192 tokens.", "code": 400}),
        (None, {"message": "the request exceeds the available context size"}),
        (413, None),
    ],
)
def test_overflow(status: int | None, error: dict[str, Any] | None) -> None:
    """A request that is too long is told apart under all its names."""
    assert isinstance(classify(status, error), ContextOverflow)


def test_texts_are_short_and_hold_no_key() -> None:
    """A server's words are cut and kept on one line; those on authentication are left out, for they quote the key."""
    made = classify(400, {"message": "a\n\x1b[31mb" + "x" * 10_000}, {"x-request-id": "req_1"})
    assert len(str(made)) < MAX_WORDS + 100
    assert "a [31mb" in str(made)
    assert "req_1" in str(made)
    for status, code in ((401, None), (403, None), (400, "invalid_api_key"), (None, "invalid_api_key")):
        assert "sk-" not in str(classify(status, {"message": "Incorrect API key provided: sk-abc", "code": code}))


def test_headers_overrule() -> None:
    """The server's own word on retrying counts more than its status."""
    assert classify(500, {}, {"x-should-retry": "false"}).retryable is False
    assert classify(400, {}, {"x-should-retry": "true"}).retryable is True
    assert classify(429, {}, {"retry-after": "7"}).retry_after == 7.0


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0.25"}, 0.25),
        ({"retry-after": "3", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1e9"}, None),
        (
            {"retry-after": "Sun, 06 Nov 1994 08:50:37 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"},
            60.0,
        ),
        ({"retry-after": "Sun, 06 Nov 1994 08:48:37 GMT", "date": "Sun, 06 Nov 1994 08:49:37 GMT"}, 0.0),
        ({"retry-after": "Sun, 06 Nov 1994 08:50:37 GMT"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """Seconds, milliseconds and dates are read; anything else says nothing."""
    assert retry_after(headers) == seconds


def test_backoff() -> None:
    """Half a second, doubled up to eight; chance takes at most a quarter off."""
    error = ModelError("x", retryable=True)
    assert [retry_delay(n, error) for n in range(6)] == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0]
    assert retry_delay(10**9, error) == 8.0
    assert retry_delay(1, error, jitter=1.0) == 0.75


def test_the_servers_wish() -> None:
    """A wish is honoured up to two minutes, never undercut, and refused beyond; what may not be retried is not."""
    wish = [ModelError("x", retryable=True, retry_after=seconds) for seconds in (0.0, 30.0, 120.0, 120.1)]
    assert [retry_delay(0, error, jitter=1.0) for error in wish] == [0.375, 30.0, 120.0, None]
    assert retry_delay(0, ModelError("x", retryable=False, retry_after=1.0)) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["error", "message", "type", "code", "object"]), inner, max_size=4)
    ),
    max_leaves=10,
)


@given(st.none() | st.integers(100, 599), JSON)
def test_any_body_is_some_error(status: int | None, payload: Any) -> None:
    """Whatever a server answers, the result is a ModelError with a text."""
    assert str(classify(status, error_in(payload)))
