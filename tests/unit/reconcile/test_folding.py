"""How a view changes: intentions, outcomes, revisions, restarts, clock steps. Every value is asserted."""

from __future__ import annotations

from math import inf

import pytest
from attrs import evolve

from hermes_trio.delivery.folding import apply, clock_stepped, intend, recover, revise
from hermes_trio.delivery.reconcile import next_step
from hermes_trio.delivery.steps import Abandon, Create, Delete, Doubt, Edit, Forget, Hold, Lookup, Settle, Wait
from hermes_trio.delivery.view import (
    Ending,
    Form,
    PostState,
    View,
    body_of,
    confirmed_places,
    doubts,
    owes_notice,
    placed,
    places,
    showable,
    unwanted,
)
from hermes_trio.platforms.outcomes import Accepted, Reason, Refused, Unknown
from hermes_trio.text.body import Body

from .build import (
    EDITABLE,
    KEYED,
    LOOKUP,
    MARKER,
    NOTE_2,
    NOTICE,
    NOW,
    PLACEHOLDER,
    PLAIN,
    PLAIN_KEYED,
    WITHDRAWN,
    A,
    B,
    C,
    ask,
    doubtful,
    live,
    run,
    shows,
    unknown,
    view,
)

V1 = Body("one")
V2 = Body("two")
LOST = Unknown("read timeout")


# -- intentions --------------------------------------------------------------------------------------------------


def test_a_create_is_intended_as_a_post():
    """Its post is there before the request, and no key is ever used twice."""
    step = next_step(view(A), PLAIN, NOW)
    after = intend(view(A), step)
    assert after == evolve(view(A), posts=(step.post,), serial=1)
    assert after.posts[0].state is PostState.INTENDED
    assert intend(after, Create(step.post, again=True)) == after


def test_an_edit_is_intended_on_its_post():
    """What the post shows is not known until the outcome; what can land no more is forgotten."""
    post = shows(0, V1, loose=frozenset({V2.fingerprint}), loose_at=NOW)
    before = view(A, posts=(post,))
    early = intend(before, Edit(post, A, 0, settled=False))
    assert early.posts == (evolve(post, editing=A.fingerprint, shown=None),)
    late = intend(before, Edit(post, A, 0, settled=True))
    assert late.posts == (evolve(post, editing=A.fingerprint, shown=None, loose=frozenset()),)


@pytest.mark.parametrize("step", [Delete(live(0)), Lookup(live(0))])
def test_deletes_and_look_ups_need_no_intention(step):
    """They may be repeated at will."""
    assert intend(view(A, posts=(live(0),)), step) == view(A, posts=(live(0),))


# -- accepted ----------------------------------------------------------------------------------------------------


def test_an_accepted_create_with_the_final_text_is_confirmed():
    """Its receipt is kept, what it carried is not needed any more, and the failures before are over."""
    before = view(A, attempts=3, last_error="unknown")
    step, after = ask(before, PLAIN, Accepted("m9"))
    post = evolve(step.post, state=PostState.LIVE, message_id="m9", body=None, shown=A.fingerprint, confirmed=0)
    assert after == evolve(before, posts=(post,), serial=1, attempts=0, last_error="")


def test_an_accepted_placeholder_shows_the_placeholder():
    """It is a place, and confirms nothing."""
    post = ask(view(A), EDITABLE, Accepted("m9"))[1].posts[0]
    assert (post.state, post.shown, post.confirmed) == (PostState.LIVE, PLACEHOLDER.fingerprint, None)


def test_an_accepted_repetition_is_the_first_message():
    """A repeated key leads to one live post."""
    after = ask(view(A, posts=(unknown(0, A),)), PLAIN_KEYED, Accepted("m9"))[1]
    assert [(p.key, p.state, p.message_id, p.confirmed) for p in after.posts] == [("k0", PostState.LIVE, "m9", 0)]


def test_a_found_post_is_live():
    """A look-up gives back what the create carried."""
    post = ask(view(A, posts=(unknown(0, A),)), LOOKUP, Accepted("m9"), NOW + 35)[1].posts[0]
    found = (post.state, post.message_id, post.body, post.shown, post.confirmed)
    assert found == (PostState.LIVE, "m9", None, A.fingerprint, 0)


def test_an_accepted_edit_shows_its_text():
    """The final text is confirmed, an uncertain edit before it is kept in mind, and the id stays."""
    post = live(0, V1, loose=frozenset({V2.fingerprint}), loose_at=NOW)
    after = ask(view(A, posts=(post,)), EDITABLE, Accepted())[1]
    assert after.posts == (evolve(post, shown=A.fingerprint, confirmed=0),)
    assert after.posts[0].message_id == "m0"


def test_an_accepted_preview_is_not_confirmed():
    """Only a final text can be."""
    after = ask(view(V1, posts=(live(0, PLACEHOLDER),), final=False), EDITABLE, Accepted())[1]
    assert after.posts == (live(0, V1),)


def test_a_preview_that_was_revised_meanwhile_is_not_confirmed():
    """What counts is what the message says, not what the view wants by then."""
    streaming = view(V1, posts=(live(0, PLACEHOLDER),), final=False)
    step = next_step(streaming, EDITABLE, NOW)
    revised = revise(intend(streaming, step), (A,), True, EDITABLE)
    assert apply(revised, step, Accepted(), EDITABLE, NOW).posts == (live(0, V1),)
    same = revise(intend(streaming, step), (V1,), True, EDITABLE)
    assert apply(same, step, Accepted(), EDITABLE, NOW).posts == (shows(0, V1),)
    gone = revise(intend(streaming, step), (), True, EDITABLE)
    assert apply(gone, step, Accepted(), EDITABLE, NOW).posts == (live(0, V1),)


def test_an_accepted_withdrawal_stays_surplus():
    """It says that it is withdrawn, holds no place and confirms nothing."""
    post = live(1, V1, undeletable=True, state=PostState.SURPLUS)
    after = ask(view(A, posts=(shows(0, A), post)), EDITABLE, Accepted())[1]
    assert after.posts == (shows(0, A), evolve(post, shown=WITHDRAWN.fingerprint))


def test_an_accepted_delete_removes_the_post():
    """Nothing of it is left."""
    after = ask(view(A, posts=(shows(0, A), live(1, B))), EDITABLE, Accepted())[1]
    assert after.posts == (shows(0, A),)


def test_accepted_and_gone_counts_as_seen_and_deleted():
    """The content was there and its user deleted it: it is not posted again."""
    after = ask(view(A, B, posts=(unknown(0, A),)), PLAIN_KEYED, Accepted("m9", gone=True))[1]
    assert (after.posts, after.forms) == ((), (Form.SEEN, Form.RICH))
    assert next_step(after, PLAIN_KEYED, NOW).post.ordinal == 1


def test_an_accepted_placeholder_that_is_gone_is_reserved_again():
    """Nobody has seen the part, so it gets another post."""
    after = ask(view(A, posts=(unknown(0),)), KEYED, Accepted("m9", gone=True))[1]
    assert (after.posts, after.forms) == ((), (Form.RICH,))
    assert next_step(after, KEYED, NOW).again is False


# -- unknown -----------------------------------------------------------------------------------------------------


def test_an_unknown_create_stays_unknown():
    """It keeps its body for a repetition, and counts from the end of the attempt."""
    before = view(A)
    step = next_step(before, PLAIN, NOW)
    after = apply(intend(before, step), step, LOST, PLAIN, NOW + 10)
    assert after.posts == (evolve(step.post, state=PostState.UNKNOWN, ended=NOW + 10),)
    assert (after.attempts, after.not_before, after.last_error) == (1, NOW + 11, "unknown: read timeout")
    assert apply(intend(before, step), step, Unknown(), PLAIN, NOW).last_error == "unknown"


def test_an_unknown_repetition_counts_from_its_end():
    """The settle time begins with the last attempt, the window with the first."""
    post = ask(view(A, posts=(unknown(0, A),)), PLAIN_KEYED, LOST, NOW + 5)[1].posts[0]
    assert post == unknown(0, A, ended=NOW + 5)


def test_an_unknown_edit_may_land_at_any_time():
    """What it says is loose, what the post shows is not known, and another text is not confirmed any more."""
    post = shows(0, V1, loose=frozenset({V2.fingerprint}), loose_at=NOW - 5)
    after = ask(view(A, posts=(evolve(post, confirmed=None),)), EDITABLE, LOST)[1]
    loose = frozenset({A.fingerprint, V2.fingerprint})
    assert after.posts == (live(0, None, loose=loose, loose_at=NOW),)
    assert (after.attempts, after.not_before) == (1, NOW + 1)


def test_an_unknown_edit_to_the_confirmed_text_leaves_it_confirmed():
    """Whether it lands or not, its part is there."""
    post = shows(0, A, loose=frozenset({V1.fingerprint}), loose_at=NOW - 35)
    after = ask(view(A, posts=(post,)), EDITABLE, LOST)[1]
    assert after.posts == (evolve(post, shown=None, loose=frozenset({A.fingerprint}), loose_at=NOW),)
    assert after.posts[0].confirmed == 0


def test_an_unknown_edit_to_another_text_takes_the_confirmation():
    """A re-flow that may have happened: its part may not be there any more."""
    after = ask(view(A, B, posts=(shows(1, B),)), EDITABLE, LOST)[1]
    assert after.posts[0].confirmed is None


def test_an_unknown_delete_or_look_up_is_tried_again():
    """Nothing changes but the time of the next attempt."""
    deleting = view(A, posts=(shows(0, A), live(1, B)))
    after = ask(deleting, EDITABLE, LOST)[1]
    assert after == evolve(deleting, attempts=1, not_before=NOW + 1, last_error="unknown: read timeout")
    asking = view(A, posts=(unknown(0, A),))
    after = ask(asking, LOOKUP, LOST, NOW + 35)[1]
    assert after == evolve(asking, attempts=1, not_before=NOW + 36, last_error="unknown: read timeout")


# -- refused: when again -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("attempts", "pause"), [(0, 1), (1, 2), (2, 4), (3, 8), (4, 15), (5, 15), (5000, 15)])
def test_the_pause_doubles_up_to_fifteen_seconds(attempts, pause):
    """A failure counts, and the pause grows with the failures in a row."""
    after = ask(view(A, attempts=attempts), PLAIN, LOST)[1]
    assert (after.attempts, after.not_before) == (attempts + 1, NOW + pause)


@pytest.mark.parametrize(("attempts", "pause"), [(0, 1), (1, 2), (2, 4), (3, 5), (9, 5)])
def test_while_nothing_leaves_the_pause_is_at_most_five_seconds(attempts, pause):
    """The create was never seen; the pause is one that life ends."""
    before = view(A, attempts=attempts, not_before=NOW - 1)
    after = ask(before, PLAIN, Refused(Reason.NOTHING_LEFT))[1]
    assert after.posts == ()
    assert (after.attempts, after.not_before) == (attempts + 1, NOW - 1)
    assert (after.down_until, after.failed_at) == (NOW + pause, NOW)
    assert after.last_error == "nothing left"


@pytest.mark.parametrize(("attempts", "pause"), [(0, 1), (4, 16), (6, 60), (9, 60)])
def test_a_refused_account_is_asked_once_a_minute(attempts, pause):
    """It is never abandoned for that; a sign of life, as after the operator's help, ends the pause."""
    after = ask(view(A, attempts=attempts), PLAIN, Refused(Reason.ACCOUNT_FATAL))[1]
    assert (after.attempts, after.down_until, after.failed_at) == (attempts + 1, NOW + pause, NOW)
    assert (after.ended, after.failure) == (None, None)
    assert recover(after, PLAIN, NOW).down_until == -inf


def test_a_rate_limit_is_kept():
    """Exactly as long as it says, without counting as a failure, never shorter than what waits already."""
    limit = Refused(Reason.RATE_LIMITED, retry_after=30.0, detail="flood")
    after = ask(view(A, attempts=2), PLAIN, limit)[1]
    assert (after.posts, after.attempts, after.not_before) == ((), 2, NOW + 30)
    assert after.last_error == "rate limited: flood"
    step = next_step(view(A), PLAIN, NOW)
    joined = evolve(intend(view(A), step), not_before=NOW + 60)
    assert apply(joined, step, limit, PLAIN, NOW).not_before == NOW + 60
    assert apply(joined, step, LOST, PLAIN, NOW).not_before == NOW + 60


def test_a_rate_limit_without_a_time_is_a_failure():
    """And one of no time at all is no reason for a hot loop."""
    after = ask(view(A), PLAIN, Refused(Reason.RATE_LIMITED))[1]
    assert (after.attempts, after.not_before) == (1, NOW + 1)
    assert ask(view(A), PLAIN, Refused(Reason.RATE_LIMITED, 0.0))[1].not_before == NOW + 0.25
    assert ask(view(A), PLAIN, Refused(Reason.RATE_LIMITED, 0.3))[1].not_before == NOW + 0.3


def test_a_pause_ends_inside_an_open_window():
    """However many failures there were, half of the time in which the key may be repeated is left."""
    waiting = view(A, posts=(unknown(0, A, created=NOW - 75),), attempts=9)
    assert ask(waiting, PLAIN_KEYED, LOST)[1].not_before == NOW + 5
    assert ask(waiting, PLAIN_KEYED, Refused(Reason.NOTHING_LEFT), NOW + 6)[1].down_until == NOW + 8
    assert ask(waiting, PLAIN_KEYED, LOST, NOW + 9.9)[1].not_before == NOW + 10.15
    assert ask(evolve(waiting, attempts=0), PLAIN_KEYED, LOST)[1].not_before == NOW + 1
    known = view(A, posts=(live(0, PLACEHOLDER, created=NOW - 75),), attempts=9)
    assert ask(known, KEYED, LOST)[1].not_before == NOW + 15
    closed = view(A, B, posts=(shows(0, A), unknown(1, B, created=NOW - 85)), attempts=9)
    assert run(evolve(closed, alive_at=NOW + 1), PLAIN_KEYED, LOST).not_before == NOW + 15


# -- refused: what else ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [r for r in Reason if r not in ("content", "formatting", "forbidden", "too long")])
def test_a_refused_repetition_stays_unknown(reason):
    """The first attempt may still have happened, whatever the second was told."""
    after = ask(view(A, posts=(unknown(0, A),), anchor="42"), PLAIN_KEYED, Refused(reason))[1]
    assert after.posts == (unknown(0, A),)


@pytest.mark.parametrize("reason", [Reason.CONTENT, Reason.FORMATTING, Reason.FORBIDDEN, Reason.TOO_LONG])
def test_a_repetition_whose_text_is_refused_was_never_taken(reason):
    """What is refused for its text was refused each time."""
    assert ask(view(A, posts=(unknown(0, A),)), PLAIN_KEYED, Refused(reason))[1].posts == ()


@pytest.mark.parametrize("reason", Reason)
def test_a_refused_create_was_never_seen(reason):
    """Nothing of it is left, so nothing will be marked."""
    after = ask(view(A, anchor="42"), PLAIN, Refused(reason))[1]
    assert (after.posts, after.ended) == ((), None)


def test_a_dead_address_is_remembered():
    """The reason is kept for all of the address, and the obligation is abandoned."""
    after = ask(view(A), PLAIN, Refused(Reason.DEAD_ADDRESS))[1]
    assert after.dead
    assert next_step(after, PLAIN, NOW) == Abandon("dead address")
    assert ask(view(A, posts=(live(0, V1),)), EDITABLE, Refused(Reason.DEAD_ADDRESS))[1].dead


def test_an_absent_message_was_never_made():
    """The part is created again, unmarked, at once."""
    after = ask(view(A, posts=(unknown(0, A),)), LOOKUP, Refused(Reason.ABSENT), NOW + 35)[1]
    assert (after.posts, after.attempts, after.not_before) == ((), 0, -inf)


@pytest.mark.parametrize("reason", [Reason.NOT_FOUND, Reason.FORBIDDEN, Reason.CONTENT])
def test_a_look_up_proves_nothing_by_another_refusal(reason):
    """Only absent is certain; it is asked again."""
    after = ask(view(A, posts=(unknown(0, A),)), LOOKUP, Refused(reason), NOW + 35)[1]
    assert (after.posts, after.not_before, after.forms) == ((unknown(0, A),), NOW + 36, (Form.RICH,))


def test_a_post_that_is_gone_before_it_was_confirmed_is_made_anew():
    """While it streams, or before the final text was confirmed, nobody can have seen the answer."""
    streaming = ask(view(V1, posts=(live(0, PLACEHOLDER),), final=False), EDITABLE, Refused(Reason.NOT_FOUND))[1]
    assert (streaming.posts, streaming.forms, streaming.not_before) == ((), (Form.RICH,), -inf)
    final = ask(view(A, B, posts=(live(0, PLACEHOLDER), live(1, V1))), EDITABLE, Refused(Reason.NOT_FOUND))[1]
    assert (final.posts, final.forms) == ((live(1, V1),), (Form.RICH, Form.RICH))


def test_a_confirmed_post_that_is_gone_was_deleted_by_its_user():
    """The part that it showed is not posted again, whichever part it should have shown now."""
    late = frozenset({V1.fingerprint})
    again = view(A, B, posts=(shows(0, A, loose=late, loose_at=0.0), shows(1, B)))
    after = ask(again, EDITABLE, Refused(Reason.NOT_FOUND))[1]
    assert (after.posts, after.forms) == ((shows(1, B),), (Form.SEEN, Form.RICH))
    reflow = ask(view(A, B, posts=(shows(1, B),)), EDITABLE, Refused(Reason.NOT_FOUND))[1]
    assert (reflow.posts, reflow.forms) == ((), (Form.RICH, Form.SEEN))


def test_a_delete_of_what_is_gone_is_done():
    """So is a withdrawal, also where the post once showed a part."""
    deleting = view(A, posts=(shows(0, A), live(1, B, confirmed=0)))
    assert ask(deleting, EDITABLE, Refused(Reason.NOT_FOUND))[1] == evolve(
        deleting, posts=(shows(0, A),), last_error="not found"
    )
    withdrawing = view(A, posts=(shows(0, A), live(1, B, confirmed=0, undeletable=True)))
    after = ask(withdrawing, EDITABLE, Refused(Reason.NOT_FOUND))[1]
    assert (after.posts, after.forms, after.failure) == ((shows(0, A),), (Form.RICH,), None)


def test_a_delete_refused_for_good_becomes_a_withdrawal():
    """The post stays, and is not deleted again."""
    after = ask(view(A, posts=(shows(0, A), live(1, B))), EDITABLE, Refused(Reason.FORBIDDEN))[1]
    assert after.posts == (shows(0, A), live(1, B, undeletable=True))
    assert after.not_before == -inf


@pytest.mark.parametrize("reason", [Reason.CONTENT, Reason.ABSENT, Reason.MOVED, Reason.TOO_LONG])
def test_a_delete_refused_otherwise_is_a_debt(reason):
    """It is tried again, and no part pays for it."""
    before = view(A, posts=(shows(0, A), live(1, B)), attempts=7)
    after = ask(before, EDITABLE, Refused(reason))[1]
    assert (after.posts, after.forms, after.not_before) == (before.posts, before.forms, NOW + 15)


@pytest.mark.parametrize("reason", [Reason.NOT_FOUND, Reason.ABSENT])
def test_a_create_refused_without_sense_is_tried_later(reason):
    """An answer that fits no create is no reason for a hot loop."""
    assert ask(view(A), PLAIN, Refused(reason))[1].not_before == NOW + 1


# -- refused: the text -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reason", [Reason.CONTENT, Reason.FORMATTING])
@pytest.mark.parametrize("wire", [EDITABLE, PLAIN])
def test_a_refused_part_gives_way_form_by_form(reason, wire):
    """As plain text, as a note, then not at all; at once each time, and the other parts go on."""
    refused = Refused(reason)
    start = view(A, B, posts=(shows(0, A),) if wire is PLAIN else (shows(0, A), live(1, PLACEHOLDER)))
    plain = ask(start, wire, refused)[1]
    assert (plain.forms, plain.not_before) == ((Form.RICH, Form.PLAIN), -inf)
    assert body_of(plain, 1, wire) == B.plain()
    noted = ask(plain, wire, refused)[1]
    assert (noted.forms, noted.failure) == ((Form.RICH, Form.NOTED), None)
    assert body_of(noted, 1, wire) == NOTE_2
    step, done = ask(noted, wire, refused)
    assert (done.forms, done.failure) == ((Form.RICH, Form.REFUSED), "content")
    if wire is EDITABLE:
        assert isinstance(step, Edit)
        assert done.posts == (shows(0, A), live(1, None, state=PostState.SURPLUS))
    else:
        assert isinstance(step, Create)
        assert next_step(done, wire, NOW) == Abandon("content")


def test_the_note_of_a_confirmed_post_leaves_it_in_its_place():
    """A post that shows its part and is refused when it is said again shows the next part that there is."""
    post = shows(0, NOTE_2, loose=frozenset({V1.fingerprint}), loose_at=0.0)
    after = ask(view(A, forms=(Form.NOTED,), posts=(post,)), EDITABLE, Refused(Reason.CONTENT))[1]
    assert after.posts == (evolve(post, shown=None, loose=frozenset()),)
    assert (after.forms, after.failure) == ((Form.REFUSED,), "content")


def test_a_refused_text_does_not_blame_what_replaced_it():
    """The view was revised while the preview was under way: the new text has its own chance."""
    streaming = view(V1, posts=(live(0, PLACEHOLDER),), final=False)
    step = next_step(streaming, EDITABLE, NOW)
    for parts in [(A,), ()]:
        revised = revise(intend(streaming, step), parts, True, EDITABLE)
        after = apply(revised, step, Refused(Reason.CONTENT), EDITABLE, NOW)
        assert (after.forms, after.oversized) == ((Form.RICH,) * len(parts), None)
        assert apply(revised, step, Refused(Reason.TOO_LONG), EDITABLE, NOW).oversized is None


def test_a_refused_placeholder_ends_reserving():
    """The platform takes no placeholder: the text goes out at once when it is final, and no part pays for it."""
    for reason in (Reason.CONTENT, Reason.FORMATTING, Reason.TOO_LONG, Reason.FORBIDDEN):
        after = ask(view(A, V1, final=False), EDITABLE, Refused(reason))[1]
        assert after == view(A, V1, final=False, serial=1, outright=True, last_error=str(reason))


def test_a_withdrawal_that_is_refused_is_given_up():
    """It stays as it is, and the obligation says so."""
    before = view(A, posts=(shows(0, A), live(1, B, undeletable=True)))
    for reason in (Reason.FORBIDDEN, Reason.CONTENT, Reason.TOO_LONG):
        after = ask(before, EDITABLE, Refused(reason))[1]
        assert (after.posts, after.failure) == ((shows(0, A),), "cannot be withdrawn")
        assert next_step(after, EDITABLE, NOW) == Abandon("cannot be withdrawn")


def test_the_first_failure_is_the_reason():
    """What follows from it does not replace it."""
    before = view(A, posts=(shows(0, A), live(1, B, undeletable=True)), failure="content")
    assert ask(before, EDITABLE, Refused(Reason.FORBIDDEN))[1].failure == "content"
    notice = view(NOTICE, forms=(Form.NOTED,), posts=(live(0, PLACEHOLDER),), failure="expired")
    assert ask(notice, EDITABLE, Refused(Reason.CONTENT))[1].failure == "expired"


# -- changes of rows ---------------------------------------------------------------------------------------------


def test_a_forgotten_post_is_gone():
    """It leaves nothing behind."""
    before = view(A, posts=(unknown(0), live(1, V1)))
    assert apply(before, Forget(unknown(0)), None, EDITABLE, NOW).posts == (live(1, V1),)


def test_a_doubted_post_marks_later_copies():
    """It is counted for ever, without its body."""
    before = view(A, posts=(unknown(0, A),))
    after = apply(before, Doubt(unknown(0, A)), None, PLAIN, NOW)
    assert after.posts == (evolve(unknown(0, A), state=PostState.DOUBTFUL, body=None),)
    assert body_of(after, 0, PLAIN) == A.prefixed(MARKER)
    assert after.not_before == -inf


def test_the_endings():
    """Delivered with parts, withdrawn without, held and abandoned with their reason."""
    assert apply(view(A), Settle(), None, PLAIN, NOW) == view(A, ended=Ending.DELIVERED)
    assert apply(view(), Settle(), None, PLAIN, NOW) == view(ended=Ending.WITHDRAWN)
    assert apply(view(A), Hold("why"), None, PLAIN, NOW) == view(A, ended=Ending.HELD, failure="why")
    assert apply(view(A), Abandon("why"), None, PLAIN, NOW) == view(A, ended=Ending.ABANDONED, failure="why")


# -- revisions ---------------------------------------------------------------------------------------------------


def test_a_revision_replaces_the_parts():
    """A part that stays as it was, in its place, keeps its form; any other starts anew."""
    before = view(A, B, C, forms=(Form.PLAIN, Form.NOTED, Form.PLAIN), final=False, oversized=1)
    after = revise(before, (A, C, B), False, EDITABLE)
    assert after == view(A, C, B, forms=(Form.PLAIN, Form.RICH, Form.RICH), final=False)


def test_a_preview_that_is_the_final_text_is_confirmed():
    """The screen certainly shows it, so no edit is made; not so when an uncertain edit may land on it."""
    late = live(1, B, loose=frozenset({V1.fingerprint}), loose_at=NOW)
    before = view(V1, final=False, posts=(live(0, A), late, live(2, V2)))
    after = revise(before, (A, B, C), True, EDITABLE)
    assert after.posts == (shows(0, A), late, live(2, V2))
    assert after.final


def test_a_preview_is_never_confirmed_while_it_streams():
    """Only a final text is."""
    assert revise(view(final=False, posts=(live(0, A),)), (A,), False, EDITABLE).posts == (live(0, A),)


def test_a_final_text_is_never_revised():
    """A programming error that changes nothing."""
    with pytest.raises(AssertionError, match="never revised"):
        revise(view(A), (B,), False, EDITABLE)


# -- restarts and the clock --------------------------------------------------------------------------------------


def test_a_restart_makes_what_was_intended_unknown():
    """A create that was intended or unknown may have happened; its settle time begins with the restart."""
    intended = evolve(unknown(0), state=PostState.INTENDED, ended=NOW - 9)
    before = view(A, B, posts=(intended, unknown(1, B, ended=NOW - 9)))
    assert recover(before, EDITABLE, NOW).posts == (unknown(0), unknown(1, B))


def test_a_restart_makes_an_intended_edit_loose():
    """It may land at any time; what was confirmed stays so only if the edit says the same."""
    loose = frozenset({V2.fingerprint})
    post = live(0, None, editing=V1.fingerprint, loose=loose, loose_at=0.0, confirmed=0)
    expected = live(0, None, loose=loose | {V1.fingerprint}, loose_at=NOW)
    assert recover(view(A, posts=(post,)), EDITABLE, NOW).posts == (expected,)
    same = evolve(post, editing=A.fingerprint)
    expected = live(0, None, loose=loose | {A.fingerprint}, loose_at=NOW, confirmed=0)
    assert recover(view(A, posts=(same,)), EDITABLE, NOW).posts == (expected,)


def test_a_restart_begins_the_settle_time_of_loose_edits_anew():
    """Nobody knows what was under way; what shows certainly stays as it is."""
    loose = shows(0, A, loose=frozenset({V1.fingerprint}), loose_at=NOW - 30)
    before = view(A, B, posts=(loose, shows(1, B), doubtful(3), live(4, C, state=PostState.SURPLUS)))
    after = recover(before, EDITABLE, NOW)
    assert after.posts == (evolve(loose, loose_at=NOW), *before.posts[1:])


def test_a_restart_keeps_waits_and_forgets_what_no_row_holds():
    """Buckets are honoured across restarts; a pause because nothing left, and a part that is too long, are not."""
    before = view(A, not_before=NOW + 900, attempts=4, down_until=NOW + 3, failed_at=NOW, oversized=0)
    assert recover(before, EDITABLE, NOW) == view(A, not_before=NOW + 900, attempts=4)


def test_a_restart_with_a_clock_that_went_back():
    """It is a step of the clock as well."""
    before = view(A, posts=(unknown(0, A),), not_before=NOW + 900)
    after = recover(before, PLAIN_KEYED, NOW + 1, stepped=True)
    assert after.posts == (unknown(0, A, created=-inf, ended=NOW + 1),)
    assert after.not_before == NOW + 16


def test_a_clock_step_closes_windows_and_begins_waits_anew():
    """No key is repeated, settle times begin now, a wait is cut to the longest backoff, life must show again."""
    loose = shows(0, A, loose=frozenset({V1.fingerprint}), loose_at=NOW - 30)
    before = view(
        A,
        B,
        posts=(loose, unknown(1, B, ended=NOW - 9), shows(2, C)),
        not_before=NOW + 900,
        alive_at=NOW,
        down_until=NOW + 900,
        failed_at=NOW + 900,
    )
    after = clock_stepped(before, PLAIN_KEYED, NOW)
    assert after.posts == (
        evolve(loose, created=-inf, ended=NOW, loose_at=NOW),
        unknown(1, B, created=-inf),
        shows(2, C, created=-inf, ended=NOW),
    )
    assert (after.not_before, after.alive_at, after.down_until, after.failed_at) == (NOW + 15, -inf, -inf, -inf)
    assert clock_stepped(evolve(before, not_before=NOW + 3), PLAIN_KEYED, NOW).not_before == NOW + 3
    assert next_step(after, PLAIN_KEYED, NOW + 15) == Wait(inf)


# -- questions about a view --------------------------------------------------------------------------------------


def test_places_and_parts():
    """Live posts hold places in the order of their creation; refused and seen parts want none."""
    forms = (Form.RICH, Form.SEEN, Form.PLAIN, Form.REFUSED, Form.NOTED)
    surplus = live(8, V1, state=PostState.SURPLUS)
    posts = (unknown(9), surplus, shows(0, A), doubtful(1), live(2, V1), live(4, V1), live(5, V1))
    crowded = view(A, B, C, V1, V2, forms=forms, posts=posts)
    assert showable(crowded) == [0, 2, 4]
    assert [post.key for post in places(crowded)] == ["k0", "k2", "k4", "k5"]
    assert [post.key for post in unwanted(crowded)] == ["k5", "k8"]
    assert confirmed_places(crowded) == 1
    assert not placed(crowded)


def test_placed_means_final_and_each_part_confirmed_in_its_place():
    """Not when one is missing, shows another part, or the text is not final; posts beyond do not matter."""
    assert placed(view(A, B, posts=(shows(0, A), shows(1, B), live(2, C))))
    assert placed(view())
    assert not placed(view(A, B, posts=(shows(0, A), shows(1, B)), final=False))
    assert not placed(view(A, B, posts=(shows(0, A),)))
    assert not placed(view(A, B, posts=(shows(1, B), shows(0, A))))
    assert placed(view(A, B, posts=(shows(1, B),), forms=(Form.SEEN, Form.RICH)))


def test_doubts_count_for_their_part():
    """Only doubtful posts, only of this part."""
    crowded = view(A, B, posts=(doubtful(0), doubtful(1, 1), doubtful(2), unknown(0, A), live(0, A)))
    assert (doubts(crowded, 0), doubts(crowded, 1)) == (2, 1)


@pytest.mark.parametrize(
    ("ended", "owes"),
    [
        ({"failure": "content", "ended": Ending.ABANDONED}, True),
        ({"failure": "content", "ended": Ending.ABANDONED, "dead": True}, False),
        ({"failure": "content"}, False),
        ({"failure": "content", "ended": Ending.HELD}, False),
        ({"failure": "expired", "ended": Ending.ABANDONED}, True),
        ({"failure": "expired", "ended": Ending.ABANDONED, "dead": True}, False),
        ({"failure": "cannot be withdrawn", "ended": Ending.ABANDONED}, False),
        ({"failure": "dropped by the operator", "ended": Ending.ABANDONED}, False),
        ({"ended": Ending.DELIVERED}, False),
    ],
)
def test_who_is_owed_a_notice(ended, owes):
    """An answer that was given up, unless its own post says so; never a dead address."""
    assert owes_notice(view(A, posts=(shows(0, A),), **ended)) is owes
    if ended.get("failure") == "expired" and not ended.get("dead"):
        assert owes_notice(view(NOTICE, posts=(live(0, NOTICE),), **ended))
        assert not owes_notice(view(NOTICE, posts=(shows(0, NOTICE),), **ended))


def test_a_new_view_is_an_open_streaming_reply():
    """The defaults: nothing wanted, nothing made, no limit."""
    fresh = View("r")
    assert (fresh.reply, fresh.final, fresh.reserve, fresh.threaded, fresh.expires) == (True, False, True, True, inf)
    assert (fresh.ended, fresh.failure, fresh.expired, fresh.not_before) == (None, None, False, -inf)
    assert (fresh.serial, fresh.attempts, fresh.allowance, fresh.posts) == (0, 0, 0, ())
    assert not View("c", kind="control").reply
    assert next_step(fresh, EDITABLE, NOW) is None


def test_what_rows_hold_does_not_change():
    """Rows hold these numbers and words; a later version has to read them."""
    assert [(form.name, form.value) for form in Form] == [
        ("RICH", 0),
        ("PLAIN", 1),
        ("NOTED", 2),
        ("REFUSED", 3),
        ("SEEN", 4),
    ]
    assert list(PostState) == ["intended", "unknown", "live", "doubtful", "surplus"]
    assert list(Ending) == ["delivered", "withdrawn", "abandoned", "held"]
