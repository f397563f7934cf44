"""What goes differently: moved chats, gone anchors and threads, texts too long, locked posts, expiry, the operator."""

from __future__ import annotations

from math import inf

import pytest
from attrs import evolve

from hermes_trio.delivery.folding import apply, drop, release, resplit
from hermes_trio.delivery.reconcile import next_step
from hermes_trio.delivery.steps import (
    Abandon,
    Create,
    Delete,
    Doubt,
    Edit,
    Expire,
    Forget,
    Hold,
    Lookup,
    Resplit,
    Settle,
)
from hermes_trio.delivery.view import Ending, Form, PostState, body_of, owes_notice
from hermes_trio.platforms.outcomes import Accepted, Reason, Refused, Unknown
from hermes_trio.text.body import Body

from .build import (
    EDITABLE,
    KEYED,
    LOOKUP,
    MARKER,
    NOTICE,
    NOW,
    PLACEHOLDER,
    PLAIN,
    PLAIN_KEYED,
    A,
    B,
    C,
    ask,
    doubtful,
    live,
    rows,
    run,
    shows,
    unknown,
    view,
)

V1 = Body("one")
A1, A2, A3 = Body("Al"), Body("ph"), Body("a")


# -- addresses ---------------------------------------------------------------------------------------------------


def test_a_gone_anchor_is_dropped():
    """The create was never seen; it is made again at once without the anchor."""
    after = ask(view(A, anchor="42"), PLAIN, Refused(Reason.ANCHOR_GONE))[1]
    assert after == view(A, serial=1, last_error="anchor gone")
    step = next_step(after, PLAIN, NOW)
    assert (step.reply_to, step.again, step.post.key) == (None, False, "r.0.1")


def test_a_gone_anchor_is_dropped_once():
    """What is refused so without an anchor is tried again later."""
    after = ask(view(A), PLAIN, Refused(Reason.ANCHOR_GONE))[1]
    assert (after.posts, after.not_before) == ((), NOW + 1)


def test_a_repetition_without_its_anchor():
    """The first attempt stays unknown; its key is repeated at once without the anchor."""
    after = ask(view(A, posts=(unknown(0, A),), anchor="42"), PLAIN_KEYED, Refused(Reason.ANCHOR_GONE))[1]
    assert next_step(after, PLAIN_KEYED, NOW) == Create(unknown(0, A), again=True, reply_to=None)


def test_a_gone_thread_is_dropped():
    """The same chat, at once, in its main thread."""
    after = ask(view(A), PLAIN, Refused(Reason.TOPIC_GONE))[1]
    assert after == view(A, serial=1, threaded=False, last_error="topic gone")
    assert next_step(after, PLAIN, NOW).threaded is False
    again = ask(after, PLAIN, Refused(Reason.TOPIC_GONE))[1]
    assert (again.threaded, again.not_before) == (False, NOW + 1)


def test_a_moved_chat_is_asked_at_once():
    """The create was never seen; the lane has the new address."""
    after = ask(view(A), PLAIN, Refused(Reason.MOVED, moved_to="7"))[1]
    assert after == view(A, serial=1, attempts=1, last_error="moved")
    edit = ask(view(A, posts=(live(0, PLACEHOLDER),)), EDITABLE, Refused(Reason.MOVED))[1]
    assert next_step(edit, EDITABLE, NOW) == Edit(live(0, None), A, 0, True)


def test_a_chat_that_moves_for_ever_is_asked_with_a_pause():
    """After five failures in a row a move is a failure like another."""
    assert ask(view(A, attempts=4), PLAIN, Refused(Reason.MOVED))[1].not_before == -inf
    assert ask(view(A, attempts=5), PLAIN, Refused(Reason.MOVED))[1].not_before == NOW + 15


# -- too long ----------------------------------------------------------------------------------------------------


def test_a_part_that_is_too_long_is_split():
    """A create that is refused so was never seen, and the lane splits its part."""
    after = ask(view(A, B), PLAIN, Refused(Reason.TOO_LONG))[1]
    assert after == view(A, B, serial=1, oversized=0, last_error="too long")
    split = resplit(after, 0, (A1, A2, A3))
    assert split == view(A1, A2, A3, B, serial=1, last_error="too long")
    assert next_step(split, PLAIN, NOW).post.body == A1


def test_an_edit_that_is_too_long_is_split():
    """Its post takes the first piece, and the others get posts of their own; a preview is split as well."""
    for final in (True, False):
        before = view(A, posts=(live(0, PLACEHOLDER),), final=final)
        split = resplit(ask(before, EDITABLE, Refused(Reason.TOO_LONG))[1], 0, (A1, A2))
        assert (split.parts, split.posts, split.oversized) == ((A1, A2), (live(0, None),), None)
        assert next_step(split, EDITABLE, NOW) == Edit(live(0, None), A1, 0, True)


def test_a_split_moves_what_is_known_of_later_parts():
    """Forms, posts, doubts and confirmations of later parts move up; those of earlier ones stay."""
    posts = (
        shows(0, C),
        doubtful(1, 1),
        live(1, PLACEHOLDER),
        shows(2, B),
        doubtful(2, 2),
        live(3, V1, state=PostState.SURPLUS),
    )
    before = view(C, A, B, forms=(Form.NOTED, Form.PLAIN, Form.SEEN), posts=posts, oversized=1)
    after = resplit(before, 1, (A1, A2, A3))
    assert after.parts == (C, A1, A2, A3, B)
    assert after.forms == (Form.NOTED, Form.PLAIN, Form.PLAIN, Form.PLAIN, Form.SEEN)
    assert [(p.key, p.ordinal, p.confirmed) for p in after.posts] == [
        ("k0", 0, 0),
        ("d1", 1, None),
        ("k1", 1, None),
        ("k2", 4, 4),
        ("d2", 4, None),
        ("k3", 5, None),
    ]
    assert body_of(after, 1, PLAIN) == A1.prefixed(MARKER)
    assert body_of(after, 2, PLAIN) == A2


@pytest.mark.parametrize("pieces", [(A,), ()])
def test_a_part_that_cannot_be_shorter_gives_way(pieces):
    """It counts as refused for its content: plain text, then a note."""
    rich = resplit(view(A, oversized=0), 0, pieces)
    assert rich == view(A, forms=(Form.PLAIN,))
    plain = resplit(evolve(rich, oversized=0), 0, pieces)
    assert plain == view(A, forms=(Form.NOTED,))


def test_a_part_may_become_one_shorter_piece():
    """It is replaced, nothing moves."""
    after = resplit(view(A, B, posts=(live(0, V1), live(1, V1)), oversized=0), 0, (A1,))
    assert after == view(A1, B, posts=(live(0, V1), live(1, V1)))


def test_a_split_of_what_was_revised_has_no_effect():
    """The pieces belong to a text that is not wanted any more."""
    assert resplit(view(A, B), 0, (A1, A2)) == view(A, B)
    assert resplit(view(A, B, oversized=1), 0, (A1, A2)) == view(A, B, oversized=1)


def test_a_note_that_is_too_long_is_given_up():
    """Only text can be split."""
    for posts in ((), (live(0, PLACEHOLDER),)):
        before = view(A, forms=(Form.NOTED,), posts=posts)
        after = ask(before, EDITABLE if posts else PLAIN, Refused(Reason.TOO_LONG))[1]
        assert (after.oversized, after.forms, after.failure) == (None, (Form.REFUSED,), "content")


def test_a_part_that_is_on_screen_is_not_split():
    """Said again it is too long: it is shown as plain text."""
    post = shows(0, A, loose=frozenset({V1.fingerprint}), loose_at=0.0)
    after = ask(view(A, posts=(post,)), EDITABLE, Refused(Reason.TOO_LONG))[1]
    assert (after.oversized, after.forms) == (None, (Form.PLAIN,))
    reflow = ask(view(A, B, posts=(shows(1, B),)), EDITABLE, Refused(Reason.TOO_LONG))[1]
    assert (reflow.oversized, reflow.forms) == (0, (Form.RICH, Form.RICH))


# -- edits refused for good --------------------------------------------------------------------------------------


def test_a_locked_post_that_shows_its_part_stays():
    """It is confirmed, so it is never edited again, and the obligation is delivered."""
    post = shows(0, A, loose=frozenset({V1.fingerprint}), loose_at=0.0)
    after = ask(view(A, posts=(post,)), EDITABLE, Refused(Reason.FORBIDDEN))[1]
    assert after.posts == (evolve(post, shown=None, loose=frozenset(), uneditable=True),)
    unsure = evolve(post, shown=None, loose_at=NOW)
    assert ask(view(A, posts=(unsure,)), EDITABLE, Refused(Reason.FORBIDDEN))[1].posts[0].loose == frozenset()
    assert (after.outright, after.failure) == (False, None)
    assert next_step(after, EDITABLE, NOW) == Settle()


def test_a_locked_post_that_does_not_show_its_part_is_replaced():
    """A new post with the text itself takes the part, then the locked one is deleted."""
    before = view(A, posts=(live(0, PLACEHOLDER),))
    after = ask(before, EDITABLE, Refused(Reason.FORBIDDEN))[1]
    assert after.posts == (live(0, None, state=PostState.SURPLUS),)
    assert (after.outright, after.forms, after.not_before) == (True, (Form.RICH,), -inf)
    step, after = ask(after, EDITABLE, Accepted("m9"))
    assert (step.post.body, step.post.reserved) == (A, False)
    step, after = ask(after, EDITABLE, Accepted())
    assert step == Delete(live(0, None, state=PostState.SURPLUS))
    assert rows(after, EDITABLE).ended is Ending.DELIVERED


def test_parts_behind_a_locked_post_reflow():
    """The order on screen is kept: the next post takes the part, and the last part gets a new one."""
    before = view(A, B, posts=(live(0, PLACEHOLDER), shows(1, B)))
    after = ask(before, EDITABLE, Refused(Reason.FORBIDDEN))[1]
    assert next_step(after, EDITABLE, NOW) == Edit(shows(1, B), A, 0, True)
    both = ask(after, EDITABLE, Refused(Reason.FORBIDDEN))[1]
    assert [post.state for post in both.posts] == [PostState.SURPLUS, PostState.SURPLUS]
    done = run(both, EDITABLE, Accepted("m8"), Accepted("m9"), Accepted(), Accepted())
    assert [(post.message_id, post.confirmed) for post in done.posts] == [("m8", 0), ("m9", 1)]
    assert done.ended is Ending.DELIVERED


def test_a_streaming_reply_reserves_no_more_once_a_post_is_locked():
    """It terminates: no further placeholder that cannot be edited, nothing before the text is final."""
    streaming = view(V1, posts=(live(0, PLACEHOLDER),), final=False)
    after = ask(streaming, EDITABLE, Refused(Reason.FORBIDDEN))[1]
    assert next_step(after, EDITABLE, NOW) is None
    step = next_step(evolve(after, final=True), EDITABLE, NOW)
    assert (step.post.body, step.post.reserved) == (V1, False)


# -- expiry ------------------------------------------------------------------------------------------------------


def expired(before, wire=EDITABLE):
    """The view after it was given up."""
    assert next_step(before, wire, NOW) == Expire()
    return apply(before, Expire(), None, wire, NOW)


def test_a_reserved_post_says_that_its_answer_expired():
    """What is confirmed stays, the next post takes the notice, the rest is dropped, and it ends abandoned."""
    before = view(A, B, C, posts=(shows(0, A), live(1, PLACEHOLDER), live(2, V1)), expires=NOW, oversized=1)
    after = expired(before)
    assert after == evolve(before, parts=(A, NOTICE), forms=(Form.RICH, Form.RICH), failure="expired", oversized=None)
    step, after = ask(after, EDITABLE, Accepted())
    assert step == Edit(live(1, PLACEHOLDER), NOTICE, 1, True)
    step, after = ask(after, EDITABLE, Accepted())
    assert step == Delete(live(2, V1))
    after = rows(after, EDITABLE)
    assert (after.ended, after.failure, owes_notice(after)) == (Ending.ABANDONED, "expired", False)


@pytest.mark.parametrize(("posts", "kept"), [((), ()), ((shows(0, A),), (A,)), ((shows(0, A), doubtful(0, 1)), (A,))])
def test_without_a_reserved_post_it_is_abandoned_at_once(posts, kept):
    """Nothing is created; the chat is owed a notice."""
    after = expired(view(A, B, posts=posts, expires=NOW), PLAIN)
    assert (after.parts, after.forms) == (kept, (Form.RICH,) * len(kept))
    assert (after.ended, after.failure, owes_notice(after)) == (Ending.ABANDONED, "expired", True)


def test_parts_that_need_no_place_are_kept_before_the_cut():
    """A part that its user deleted, or that was refused, is over: the cut comes at the first one still to be shown."""
    before = view(A, B, C, forms=(Form.SEEN, Form.PLAIN, Form.RICH), posts=(shows(1, B.plain()),), expires=NOW)
    after = expired(before)
    assert (after.parts, after.forms) == ((A, B), (Form.SEEN, Form.PLAIN))


def test_the_notice_is_not_marked():
    """Doubts of what was given up are over; those of what stays are kept."""
    copy = shows(0, A.prefixed(MARKER))
    before = view(A, B, posts=(doubtful(0), copy, doubtful(1, 1), live(1, PLACEHOLDER)), expires=NOW)
    after = expired(before)
    assert after.posts == (doubtful(0), copy, live(1, PLACEHOLDER))
    assert next_step(after, EDITABLE, NOW).body == NOTICE


def test_a_post_that_showed_another_part_takes_the_notice():
    """What was confirmed of parts that are dropped is not known any more."""
    after = expired(view(A, B, posts=(shows(1, B),), expires=NOW))
    assert after.posts == (live(1, B),)
    lost = ask(after, EDITABLE, Refused(Reason.NOT_FOUND))[1]
    assert next_step(lost, EDITABLE, NOW) == Abandon("expired")
    assert owes_notice(rows(lost, EDITABLE))


@pytest.mark.parametrize(
    ("post", "wire", "step"),
    [
        (unknown(0, A), PLAIN, Forget(unknown(0, A))),
        (unknown(0, A), PLAIN_KEYED, Forget(unknown(0, A))),
        (unknown(0), KEYED, Forget(unknown(0))),
        (live(5, V1, state=PostState.SURPLUS), EDITABLE, Delete(live(5, V1, state=PostState.SURPLUS))),
    ],
)
def test_what_is_under_way_is_cleared_first(post, wire, step):
    """It is not abandoned before nothing of it is left, as far as that can be had."""
    after = expired(view(A, posts=(post,), expires=NOW), wire)
    assert (after.ended, after.failure, after.parts) == (None, "expired", ())
    assert next_step(after, wire, NOW) == step


def test_what_an_expired_obligation_made_is_found_and_deleted():
    """Where it can be looked up, no placeholder is left behind."""
    after = expired(view(A, posts=(unknown(0),), expires=NOW), LOOKUP)
    step, after = ask(after, LOOKUP, Accepted("m9"), NOW + 35)
    assert isinstance(step, Lookup)
    step, after = ask(after, LOOKUP, Accepted(), NOW + 36)
    assert (type(step), step.post.message_id) == (Delete, "m9")
    assert rows(after, LOOKUP).ended is Ending.ABANDONED


def test_a_late_edit_on_what_stays_is_overwritten_first():
    """The parts that stay are said again before it ends."""
    post = shows(0, A, loose=frozenset({V1.fingerprint}), loose_at=0.0)
    after = expired(view(A, B, posts=(post,), expires=NOW))
    assert after.ended is None
    assert next_step(after, EDITABLE, NOW) == Edit(post, A, 0, True)


# -- the operator ------------------------------------------------------------------------------------------------


def test_a_released_obligation_makes_one_more_marked_copy():
    """Then it is held again."""
    before = view(A, posts=(doubtful(0), doubtful(1), unknown(2, A, ordinal=0)), alive_at=NOW + 1)
    held = apply(before, next_step(before, PLAIN, NOW), None, PLAIN, NOW)
    assert (held.ended, held.failure) == (Ending.HELD, "part 1 is uncertain")
    open_again = release(held, NOW)
    assert open_again == evolve(before, allowance=1)
    assert isinstance(next_step(open_again, PLAIN, NOW), Doubt)
    copied = run(open_again, PLAIN, Unknown())
    assert copied.posts[-1].body == A.prefixed(MARKER)
    assert next_step(evolve(copied, not_before=-inf), PLAIN, NOW) == Hold("part 1 is uncertain")
    assert release(evolve(held, allowance=1), NOW).allowance == 2


def test_a_released_copy_that_is_accepted_delivers():
    """The marked copy is the answer."""
    held = view(A, posts=(doubtful(0), doubtful(1), unknown(2, A, ordinal=0)), alive_at=NOW + 1, ended=Ending.HELD)
    done = run(release(held, NOW), PLAIN, Accepted("m9"))
    assert (done.ended, done.failure) == (Ending.DELIVERED, None)


def test_a_release_outlasts_an_expiry_that_has_passed():
    """The operator's word counts; an expiry that lies ahead stays."""
    held = view(A, posts=(unknown(0, A),), ended=Ending.HELD)
    assert release(evolve(held, expires=NOW), NOW).expires == inf
    assert release(evolve(held, expires=NOW + 1), NOW).expires == NOW + 1


def test_a_dropped_obligation_is_abandoned():
    """The operator knows, so no notice is owed."""
    dropped = drop(view(A, ended=Ending.HELD, failure="part 1 is uncertain"))
    assert (dropped.ended, dropped.failure) == (Ending.ABANDONED, "dropped by the operator")
    assert not owes_notice(dropped)


@pytest.mark.parametrize("decide", [drop, lambda held: release(held, NOW)])
@pytest.mark.parametrize("ended", [None, Ending.DELIVERED, Ending.ABANDONED, Ending.WITHDRAWN])
def test_only_what_is_held_is_decided_about(decide, ended):
    """A settled obligation cannot be re-opened, an open one not be dropped: a programming error."""
    with pytest.raises(AssertionError, match="not held"):
        decide(view(A, ended=ended))


def test_resplit_is_not_applied():
    """The step names the part; only the lane knows how to split it."""
    assert next_step(view(A, oversized=0), PLAIN, NOW) == Resplit(0)
