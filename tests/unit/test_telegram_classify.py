"""What answers of the Bot API mean for a create, an edit and a delete."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown
from hermes_trio.platforms.telegram.classify import (
    CREATE,
    DEFAULT_RETRY_AFTER,
    DELETE,
    DETAIL_LIMIT,
    EDIT,
    classify,
)

METHODS = [CREATE, EDIT, DELETE]
NOT_MODIFIED = (
    "message is not modified: specified new message content and reply markup are exactly the same as a current "
    "content and reply markup of the message"
)


def refusal(code: int, description: str, **parameters: object) -> bytes:
    held: dict[str, object] = {"ok": False, "error_code": code, "description": description}
    return json.dumps({**held, "parameters": parameters} if parameters else held).encode()


def ask(method: str, code: int, description: str, **parameters: object) -> Outcome:
    return classify(method, code, {}, refusal(code, description, **parameters))


DOCUMENTED = [
    # method, code, description, reason, scope
    (CREATE, 400, "Bad Request: chat not found", Reason.DEAD_ADDRESS, "address"),
    (EDIT, 400, "Bad Request: chat not found", Reason.DEAD_ADDRESS, "address"),
    (DELETE, 400, "Bad Request: chat not found", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 400, "Bad Request: chat_id is empty", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 400, "Bad Request: private chat not found", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 400, "Bad Request: group chat was upgraded to a supergroup chat", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 400, "Bad Request: message is too long", Reason.TOO_LONG, "post"),
    (EDIT, 400, "Bad Request: MESSAGE_TOO_LONG", Reason.TOO_LONG, "post"),
    (CREATE, 400, "Bad Request: text is too long", Reason.TOO_LONG, "post"),
    (CREATE, 413, "Request Entity Too Large", Reason.TOO_LONG, "post"),
    (
        CREATE,
        400,
        "Bad Request: can't parse entities: Character '.' is reserved and must be escaped",
        Reason.FORMATTING,
        "post",
    ),
    (
        EDIT,
        400,
        "Bad Request: Can't parse entities: Can't find end of Bold entity at byte offset 7",
        Reason.FORMATTING,
        "post",
    ),
    (CREATE, 400, "Bad Request: ENTITY_BOUNDS_INVALID", Reason.FORMATTING, "post"),
    (CREATE, 400, "Bad Request: text must be non-empty", Reason.CONTENT, "post"),
    (CREATE, 400, "Bad Request: message text is empty", Reason.CONTENT, "post"),
    (CREATE, 400, "Bad Request: message to be replied not found", Reason.ANCHOR_GONE, "post"),
    (CREATE, 400, "Bad Request: reply message not found", Reason.ANCHOR_GONE, "post"),
    (CREATE, 400, "Bad Request: REPLY_MESSAGE_ID_INVALID", Reason.ANCHOR_GONE, "post"),
    (CREATE, 400, "Bad Request: MESSAGE_ID_INVALID", Reason.ANCHOR_GONE, "post"),
    (CREATE, 400, "Bad Request: message thread not found", Reason.TOPIC_GONE, "post"),
    (CREATE, 400, "Bad Request: TOPIC_DELETED", Reason.TOPIC_GONE, "post"),
    (CREATE, 400, "Bad Request: TOPIC_CLOSED", Reason.TOPIC_GONE, "post"),
    (CREATE, 400, "Bad Request: not enough rights to send text messages to the chat", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 400, "Bad Request: have no rights to send a message", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 400, "Bad Request: CHAT_WRITE_FORBIDDEN", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: CHAT_SEND_PLAIN_FORBIDDEN", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 401, "Unauthorized", Reason.ACCOUNT_FATAL, "account"),
    (EDIT, 401, "Unauthorized: invalid token specified", Reason.ACCOUNT_FATAL, "account"),
    (CREATE, 404, "Not Found", Reason.ACCOUNT_FATAL, "account"),
    (DELETE, 404, "Not Found: method not found", Reason.ACCOUNT_FATAL, "account"),
    (CREATE, 400, "Logged out", Reason.ACCOUNT_FATAL, "account"),
    (CREATE, 403, "Forbidden: bot was blocked by the user", Reason.DEAD_ADDRESS, "address"),
    (EDIT, 403, "Forbidden: bot was blocked by the user", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: user is deactivated", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: bot can't initiate conversation with a user", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: bot was kicked from the group chat", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: bot was kicked from the supergroup chat", Reason.DEAD_ADDRESS, "address"),
    (DELETE, 403, "Forbidden: bot was kicked from the channel chat", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: bot is not a member of the supergroup chat", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: the group chat was deleted", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: bot can't send messages to bots", Reason.DEAD_ADDRESS, "address"),
    (CREATE, 403, "Forbidden: something newer than this table", Reason.DEAD_ADDRESS, "address"),
    (EDIT, 403, "Forbidden: something newer than this table", Reason.FORBIDDEN, "post"),
    (EDIT, 400, "Bad Request: message to edit not found", Reason.NOT_FOUND, "post"),
    (EDIT, 400, "Bad Request: MESSAGE_ID_INVALID", Reason.NOT_FOUND, "post"),
    (EDIT, 400, "Bad Request: TOPIC_DELETED", Reason.NOT_FOUND, "post"),
    (EDIT, 400, "Bad Request: TOPIC_CLOSED", Reason.FORBIDDEN, "post"),
    (EDIT, 400, "Bad Request: message can't be edited", Reason.FORBIDDEN, "post"),
    (EDIT, 400, "Bad Request: not enough rights", Reason.FORBIDDEN, "post"),
    (DELETE, 400, "Bad Request: message to delete not found", Reason.NOT_FOUND, "post"),
    (DELETE, 400, "Bad Request: MESSAGE_ID_INVALID", Reason.NOT_FOUND, "post"),
    (DELETE, 400, "Bad Request: message can't be deleted", Reason.FORBIDDEN, "post"),
    (DELETE, 400, "Bad Request: message can't be deleted for everyone", Reason.FORBIDDEN, "post"),
    (DELETE, 400, "Bad Request: MESSAGE_DELETE_FORBIDDEN", Reason.FORBIDDEN, "post"),
    (DELETE, 400, "Bad Request: a reason that is newer than this table", Reason.FORBIDDEN, "post"),
    (CREATE, 400, "Bad Request: a reason that is newer than this table", Reason.CONTENT, "post"),
    (EDIT, 400, "Bad Request: a reason that is newer than this table", Reason.CONTENT, "post"),
]


@pytest.mark.parametrize(("method", "code", "description", "reason", "scope"), DOCUMENTED)
@pytest.mark.parametrize("spelling", [str, str.upper, str.lower])
def test_each_documented_refusal_has_its_reason(
    method: str, code: int, description: str, reason: Reason, scope: str, spelling: type[str]
) -> None:
    """A documented description means the same in any case of letters, and its words are kept for the operator."""
    said = spelling(description)
    assert ask(method, code, said) == Refused(reason, scope=scope, detail=said)


@pytest.mark.parametrize("said", [NOT_MODIFIED, "MESSAGE_NOT_MODIFIED"])
def test_an_edit_that_changes_nothing_is_accepted(said: str) -> None:
    """Not modified means that the message shows the text already."""
    assert ask(EDIT, 400, f"Bad Request: {said}") == Accepted()


def test_a_create_is_accepted_with_its_receipt() -> None:
    """The message id of a create comes back as a string."""
    body = json.dumps({"ok": True, "result": {"message_id": 77, "chat": {"id": 5}}}).encode()
    assert classify(CREATE, 200, {}, body) == Accepted(message_id="77")


@pytest.mark.parametrize("method", [EDIT, DELETE])
@pytest.mark.parametrize("result", [True, {"message_id": 77}])
def test_an_edit_and_a_delete_are_accepted(method: str, result: object) -> None:
    """Whatever the result of an accepted edit or delete is, it was done."""
    assert classify(method, 200, {}, json.dumps({"ok": True, "result": result}).encode()) == Accepted()


@pytest.mark.parametrize("result", [True, None, {}, {"message_id": "77"}, {"message_id": True}])
def test_a_create_without_a_receipt_is_unknown(result: object) -> None:
    """An accepted create that names no message cannot be edited later, and must not be taken for refused."""
    assert isinstance(classify(CREATE, 200, {}, json.dumps({"ok": True, "result": result}).encode()), Unknown)


def test_a_moved_chat_names_its_new_id() -> None:
    """Whatever the text is, the new id of an upgraded group is taken from the parameters."""
    said = "Bad Request: group chat was upgraded to a supergroup chat"
    outcome = ask(CREATE, 400, said, migrate_to_chat_id=-1001234567890)
    assert outcome == Refused(Reason.MOVED, scope="address", moved_to="-1001234567890", detail=said)


@pytest.mark.parametrize(
    ("in_body", "in_header", "waits"),
    [
        (30, None, 30.0),
        (0.3, None, 0.3),
        ("7", None, 7.0),
        (None, "12", 12.0),
        (None, "0.5", 0.5),
        (3, "5", 5.0),
        (5, "3", 5.0),
        (-4, None, 0.0),
        (None, None, DEFAULT_RETRY_AFTER),
        (None, "Wed, 21 Oct 2026 07:28:00 GMT", DEFAULT_RETRY_AFTER),
        (True, None, DEFAULT_RETRY_AFTER),
        ("soon", "nan", DEFAULT_RETRY_AFTER),
        (float("inf"), None, DEFAULT_RETRY_AFTER),
        ([3], None, DEFAULT_RETRY_AFTER),
        (900, None, 900.0),
    ],
)
@pytest.mark.parametrize("method", METHODS)
def test_a_rate_limit_waits_as_long_as_the_longest_time_named(
    method: str, in_body: object, in_header: str | None, waits: float
) -> None:
    """retry_after counts from the body and the header, as whole or broken number; without one there is a default."""
    headers = {} if in_header is None else {"retry-after": in_header}
    named = {} if in_body is None else {"retry_after": in_body}
    outcome = classify(method, 429, headers, refusal(429, "Too Many Requests: retry after 5", **named))
    assert outcome == Refused(
        Reason.RATE_LIMITED, retry_after=waits, scope="bucket", detail="Too Many Requests: retry after 5"
    )


def test_a_rate_limit_of_a_proxy_is_one_too() -> None:
    """429 without an envelope was declined all the same."""
    assert classify(CREATE, 429, {"retry-after": "2"}, b"<html>slow down</html>") == Refused(
        Reason.RATE_LIMITED, retry_after=2.0, scope="bucket"
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("status", [500, 502, 503, 504, 599])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Bad Gateway</html>",
        b'{"ok":true,"result":{"message_id":1}}',
        refusal(500, "Internal Server Error: restart"),
        refusal(400, "Bad Request: message to edit not found"),
        refusal(429, "Too Many Requests: retry after 1", retry_after=1),
    ],
)
def test_every_5xx_is_unknown(method: str, status: int, body: bytes) -> None:
    """A server that failed may have done it first, whatever the body says."""
    assert isinstance(classify(method, status, {}, body), Unknown)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b'{"ok":tru'),
        (200, b"[]"),
        (200, b'"ok"'),
        (200, b'{"result":{"message_id":1}}'),
        (200, b'{"ok":"true","result":{"message_id":1}}'),
        (200, b"\xff\xfe"),
        (200, b"[" * 100_000),
        (200, refusal(502, "Bad Gateway")),
        (204, b""),
        (301, b""),
        (302, b'{"ok":true,"result":{"message_id":1}}'),
        (307, refusal(307, "Temporary Redirect")),
        (400, b"<html>Bad Request</html>"),
        (403, b"blocked by the company's proxy"),
        (404, b"<html>nginx</html>"),
    ],
)
def test_what_is_not_telegrams_own_word_is_unknown(method: str, status: int, body: bytes) -> None:
    """Garbage, a redirect and a proxy's page decline nothing."""
    assert isinstance(classify(method, status, {}, body), Unknown)


def test_a_refusal_under_status_200_is_a_refusal() -> None:
    """The envelope's own code counts where the HTTP status says nothing."""
    outcome = classify(EDIT, 200, {}, refusal(400, "Bad Request: message to edit not found"))
    assert isinstance(outcome, Refused)
    assert outcome.reason is Reason.NOT_FOUND


def test_a_long_description_is_cut() -> None:
    """A row never has to hold a page that somebody put into a description."""
    outcome = ask(CREATE, 400, "x" * 10_000)
    assert isinstance(outcome, Refused)
    assert len(outcome.detail) == DETAIL_LIMIT


@given(
    method=st.sampled_from([*METHODS, "sendChatAction"]),
    status=st.integers(100, 599),
    body=st.binary(max_size=80) | st.from_type(dict[str, int]).map(lambda d: json.dumps(d).encode()),
)
def test_nothing_but_an_envelope_or_a_clear_status_decides(method: str, status: int, body: bytes) -> None:
    """Arbitrary bytes raise nothing, and are Unknown unless the status alone declines the request."""
    outcome = classify(method, status, {}, body)
    assert isinstance(outcome, Refused if status in (413, 429) else Unknown)
