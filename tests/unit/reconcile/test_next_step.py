"""The order of thought, rule by rule: which step follows from which view, with every value that it carries."""

from __future__ import annotations

from math import inf

import pytest
from attrs import evolve

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
    Wait,
)
from hermes_trio.delivery.view import Ending, Form, Post, PostState, Wire

from .build import (
    EDITABLE,
    KEYED,
    LOOKUP,
    MARKER,
    NOTE_1,
    NOTICE,
    NOW,
    PLACEHOLDER,
    PLAIN,
    PLAIN_KEYED,
    WITHDRAWN,
    A,
    B,
    C,
    doubtful,
    live,
    shows,
    unknown,
    view,
)

V1 = PLACEHOLDER.prefixed("one ")
V2 = PLACEHOLDER.prefixed("two ")


def new(ordinal, body, reserved, serial=0):
    """A post that was never asked for."""
    return Post(ordinal, f"r.{ordinal}.{serial}", body, reserved, created=NOW, ended=NOW)


# -- ended, and rule 1: a dead address ---------------------------------------------------------------------------


@pytest.mark.parametrize("ending", Ending)
def test_an_ended_obligation_has_no_step(ending):
    """Whatever is left, also on a dead address: an obligation that ended takes no step."""
    assert next_step(view(A, ended=ending, dead=True), EDITABLE, NOW) is None


def test_a_dead_address_is_abandoned_at_once():
    """Rule 1: permanently refused, so it is abandoned with the reason, whatever waits or is uncertain."""
    dead = view(A, posts=(unknown(0),), dead=True, not_before=inf, expires=0.0, oversized=0)
    assert next_step(dead, EDITABLE, NOW) == Abandon("dead address")


def test_a_dead_address_ends_a_streaming_reply_too():
    """Rule 1 holds before the text is final."""
    assert next_step(view(A, final=False, dead=True), EDITABLE, NOW) == Abandon("dead address")


# -- rule 2: waiting ---------------------------------------------------------------------------------------------


def test_nothing_is_asked_before_its_time():
    """Rule 2: until `not_before` it waits, exactly so long."""
    waiting = view(A, not_before=NOW + 7)
    assert next_step(waiting, PLAIN, NOW) == Wait(NOW + 7)
    assert next_step(waiting, PLAIN, NOW + 6.99) == Wait(NOW + 7)
    assert isinstance(next_step(waiting, PLAIN, NOW + 7), Create)


def test_while_nothing_leaves_it_waits():
    """Rule 2: a pause because nothing left is one like any other while the account shows no life."""
    down = view(A, down_until=NOW + 4, failed_at=NOW - 1, alive_at=NOW - 1)
    assert next_step(down, PLAIN, NOW) == Wait(NOW + 4)
    assert isinstance(next_step(down, PLAIN, NOW + 4), Create)


def test_life_after_the_failure_ends_that_pause():
    """Rule 2: the account showed life after nothing had left, so the next attempt is made at once."""
    back = view(A, down_until=NOW + 4, failed_at=NOW - 1, alive_at=NOW - 0.5)
    assert isinstance(next_step(back, PLAIN, NOW), Create)


def test_life_does_not_make_a_hot_loop():
    """Rule 2: however often the account shows life, a quarter of a second lies between two attempts."""
    back = view(A, down_until=NOW + 4, failed_at=NOW - 0.1, alive_at=NOW)
    assert next_step(back, PLAIN, NOW) == Wait(NOW - 0.1 + 0.25)


def test_life_does_not_end_a_rate_limit():
    """Rule 2: a sign of life ends the pause because nothing left, never another one."""
    limited = view(A, not_before=NOW + 3, down_until=NOW + 4, failed_at=NOW - 1, alive_at=NOW)
    assert next_step(limited, PLAIN, NOW) == Wait(NOW + 3)


def test_the_longer_pause_counts():
    """Rule 2: a rate limit and a pause because nothing left hold both."""
    assert next_step(view(A, not_before=NOW + 3, down_until=NOW + 4), PLAIN, NOW) == Wait(NOW + 4)
    assert next_step(view(A, not_before=NOW + 5, down_until=NOW + 4), PLAIN, NOW) == Wait(NOW + 5)


# -- expiry ------------------------------------------------------------------------------------------------------


def test_its_time_is_over():
    """What is not on screen when its time is over expires, also while it waits or is uncertain."""
    late = view(A, posts=(unknown(0, A),), expires=NOW, not_before=NOW + 5)
    assert next_step(late, PLAIN, NOW) == Expire()
    assert next_step(late, PLAIN, NOW - 0.01) == Wait(NOW)


def test_a_wait_ends_when_its_time_is_over():
    """No wait is longer than the time that is left, also one without an end."""
    stuck = view(A, posts=(unknown(0, A),), expires=NOW + 9)
    assert next_step(stuck, PLAIN, NOW) == Wait(NOW + 9)
    assert next_step(evolve(stuck, not_before=NOW + 5), PLAIN, NOW) == Wait(NOW + 5)


def test_a_streaming_reply_does_not_expire():
    """A turn that is not finished has all the time it needs; its wait is not cut either."""
    streaming = view(A, final=False, expires=NOW - 1, not_before=NOW + 5)
    assert next_step(streaming, EDITABLE, NOW) == Wait(NOW + 5)


def test_what_is_on_screen_does_not_expire():
    """A reply that is shown and only has something to clear away is never given up."""
    shown = view(A, posts=(shows(0, A), live(1, B)), expires=NOW - 1)
    assert next_step(shown, EDITABLE, NOW) == Delete(live(1, B))
    assert next_step(evolve(shown, not_before=NOW + 5), EDITABLE, NOW) == Wait(NOW + 5)


def test_it_expires_once():
    """After it was given up it shows its notice and ends; nothing new is created."""
    given_up = view(NOTICE, posts=(live(0, PLACEHOLDER),), expires=NOW - 1, failure="expired")
    assert next_step(given_up, EDITABLE, NOW) == Edit(live(0, PLACEHOLDER), NOTICE, 0, True)
    assert next_step(evolve(given_up, posts=()), EDITABLE, NOW) == Abandon("expired")
    assert next_step(evolve(given_up, not_before=NOW + 5), EDITABLE, NOW) == Wait(NOW + 5)


@pytest.mark.parametrize("wire", [EDITABLE, KEYED, PLAIN, PLAIN_KEYED])
def test_an_expired_obligation_repeats_nothing(wire):
    """An uncertain create of an expired obligation is left to itself, also inside its key window."""
    given_up = view(posts=(unknown(0, A),), failure="expired")
    assert next_step(given_up, wire, NOW) == Forget(unknown(0, A))


def test_an_expired_obligation_doubts_nothing():
    """Uncertain content beside the notice is no reason to mark it, to wait or to hold."""
    given_up = view(NOTICE, posts=(unknown(0, A), live(1, PLACEHOLDER)), failure="expired")
    assert next_step(given_up, PLAIN, NOW) == Forget(unknown(0, A))


def test_an_expired_obligation_still_looks_what_it_made():
    """Where the wire can look it up, what an expired obligation made is found, to be cleared away."""
    given_up = view(posts=(unknown(0, A),), failure="expired")
    assert next_step(given_up, LOOKUP, NOW + 35) == Lookup(unknown(0, A))


# -- too long ----------------------------------------------------------------------------------------------------


def test_a_part_that_is_too_long_is_split_first():
    """What is too long is split before anything else is tried, also while it waits."""
    assert next_step(view(A, B, oversized=1, not_before=NOW + 5), EDITABLE, NOW) == Resplit(1)
    assert next_step(view(A, B, oversized=0, final=False), EDITABLE, NOW) == Resplit(0)


# -- rule 3: a post of unknown outcome ---------------------------------------------------------------------------


def test_inside_the_window_the_key_is_repeated():
    """Rule 3: keyed, so the same key and the same body, with the anchor that it had."""
    asked = view(A, posts=(unknown(0),), anchor="42")
    assert next_step(asked, KEYED, NOW) == Create(unknown(0), again=True, reply_to="42", threaded=True)


def test_a_key_is_repeated_until_it_could_land_outside():
    """Rule 3: only while now - created < window - request deadline - lateness."""
    post = unknown(0, created=NOW)
    assert next_step(view(A, posts=(post,)), KEYED, NOW + 84.99) == Create(post, again=True)
    assert next_step(view(A, posts=(post,)), KEYED, NOW + 85) == Forget(post)


def test_a_longer_settle_time_does_not_close_the_window():
    """Rule 3: the window counts the deadline and the lateness, not a settle time that was configured longer."""
    slow = evolve(KEYED, settle_time=100.0)
    post = unknown(0, created=NOW)
    assert next_step(view(A, posts=(post,)), slow, NOW + 84) == Create(post, again=True)


def test_a_window_that_was_closed_stays_closed():
    """Rule 3: after a step of the clock no key is repeated."""
    post = unknown(0, created=-inf)
    assert next_step(view(A, posts=(post,)), KEYED, NOW) == Forget(post)


def test_a_look_up_waits_for_what_may_still_land():
    """Rule 3: the settle time counts from the end of the attempt; then the look-up."""
    post = unknown(0)
    assert next_step(view(A, posts=(post,)), LOOKUP, NOW) == Wait(NOW + 35)
    assert next_step(view(A, posts=(post,)), LOOKUP, NOW + 34.99) == Wait(NOW + 35)
    assert next_step(view(A, posts=(post,)), LOOKUP, NOW + 35) == Lookup(post)


def test_a_configured_settle_time_is_kept():
    """Rule 3: longer than the least it counts, shorter it does not."""
    post = unknown(0)
    assert next_step(view(A, posts=(post,)), evolve(LOOKUP, settle_time=50.0), NOW) == Wait(NOW + 50)
    assert next_step(view(A, posts=(post,)), evolve(LOOKUP, settle_time=5.0), NOW) == Wait(NOW + 35)


def test_a_key_goes_before_a_look_up():
    """Rule 3: where the wire can do both, the key is repeated while it may be."""
    both = evolve(LOOKUP, key_window=120.0)
    assert next_step(view(A, posts=(unknown(0),)), both, NOW) == Create(unknown(0), again=True)
    assert next_step(view(A, posts=(unknown(0),)), both, NOW + 100) == Lookup(unknown(0))


def test_an_uncertain_placeholder_is_forgotten():
    """Rule 3: it costs a stray at most, so another is reserved, without a sign of life."""
    assert next_step(view(A, posts=(unknown(0),)), EDITABLE, NOW) == Forget(unknown(0))


def test_uncertain_content_without_a_part_is_forgotten():
    """Rule 3: a post for a part that is not wanted any more is worth no doubt."""
    post = unknown(1, B)
    assert next_step(view(A, posts=(post,)), PLAIN, NOW) == Forget(post)


def test_uncertain_content_waits_for_a_sign_of_life():
    """Rule 3: the next copy waits until the account has shown life since the attempt."""
    asked = view(A, posts=(unknown(0, A),))
    assert next_step(asked, PLAIN, NOW) == Wait(inf)
    assert next_step(evolve(asked, alive_at=NOW), PLAIN, NOW) == Wait(inf)
    assert next_step(evolve(asked, alive_at=NOW + 0.01), PLAIN, NOW + 1) == Doubt(unknown(0, A))


def test_two_marked_copies_and_then_it_is_held():
    """Rule 3: the first doubt and one more, then the operator is asked; without a sign of life too."""
    one = view(A, posts=(doubtful(0), unknown(0, A)), alive_at=NOW + 1)
    two = view(A, posts=(doubtful(0), doubtful(1), unknown(0, A)))
    assert next_step(one, PLAIN, NOW + 2) == Doubt(unknown(0, A))
    assert next_step(two, PLAIN, NOW + 2) == Hold("part 1 is uncertain")


def test_doubts_of_another_part_do_not_count():
    """Rule 3: marked copies are counted for each part by itself, and the reason names the part."""
    other = view(A, B, posts=(shows(0, A), doubtful(0), doubtful(1), unknown(1, B)), alive_at=NOW + 1)
    assert next_step(other, PLAIN, NOW) == Doubt(unknown(1, B))
    same = view(A, B, posts=(shows(0, A), doubtful(0, 1), doubtful(1, 1), unknown(1, B)), alive_at=NOW + 1)
    assert next_step(same, PLAIN, NOW) == Hold("part 2 is uncertain")


def test_on_uncertain_hold_makes_no_marked_copy():
    """Rule 3: configured so, it is held after the first uncertain copy."""
    asked = view(A, posts=(unknown(0, A),), alive_at=NOW + 1)
    assert next_step(asked, evolve(PLAIN, marked_copies=0), NOW) == Hold("part 1 is uncertain")


def test_the_operator_grants_further_copies():
    """Rule 3: each grant is one more."""
    asked = view(A, posts=(doubtful(0), doubtful(1), unknown(0, A)), alive_at=NOW + 1, allowance=1)
    assert next_step(asked, PLAIN, NOW) == Doubt(unknown(0, A))
    more = evolve(asked, posts=(doubtful(2), *asked.posts))
    assert next_step(more, PLAIN, NOW) == Hold("part 1 is uncertain")


def test_nothing_stale_stays_while_it_is_held():
    """Rule 3: before it is held, what should be gone is deleted."""
    surplus = live(5, V1, state=PostState.SURPLUS)
    held = view(A, posts=(surplus, doubtful(0), doubtful(1), unknown(0, A)), outright=True)
    assert next_step(held, EDITABLE, NOW) == Delete(surplus)


def test_what_is_unknown_comes_before_everything_else():
    """Rule 3 comes before showing and clearing: also for a surplus post, also in a streaming reply."""
    asked = view(A, B, posts=(live(0, V1), unknown(7), live(2, V2)), final=False)
    assert next_step(asked, EDITABLE, NOW) == Forget(unknown(7))


# -- rule 4: a part without a post -------------------------------------------------------------------------------


def test_a_reply_is_reserved_on_an_editable_wire():
    """Rule 4: the create carries the placeholder, and the key says which create of which part it is."""
    assert next_step(view(A, anchor="42"), EDITABLE, NOW) == Create(new(0, PLACEHOLDER, True), False, "42", True)


def test_the_first_part_alone_answers_the_anchor():
    """Rule 4: later parts stand by themselves."""
    second = view(A, B, posts=(shows(0, A),), anchor="42")
    assert next_step(second, EDITABLE, NOW) == Create(new(1, PLACEHOLDER, True, 1), False, None, True)


def test_a_gone_thread_is_left_out():
    """Rule 4: without its thread a create goes to the main thread of the chat."""
    assert next_step(view(A, threaded=False), EDITABLE, NOW) == Create(new(0, PLACEHOLDER, True), False, None, False)


def test_a_control_message_is_created_with_its_text():
    """Rule 4: a push shows the create, so what does not stream is not reserved."""
    control = view(A, kind="control", reserve=False)
    assert next_step(control, EDITABLE, NOW) == Create(new(0, A, False))


def test_a_streaming_obligation_is_always_reserved():
    """Rule 4: while it streams the text is the placeholder, whatever is configured."""
    assert next_step(view(A, reserve=False, final=False), EDITABLE, NOW) == Create(new(0, PLACEHOLDER, True))


def test_a_marked_copy_is_reserved_on_an_editable_wire():
    """Rule 4: content that was once uncertain is created as a placeholder, so that there is one marked copy at most."""
    control = view(A, posts=(doubtful(0),), kind="control", reserve=False)
    assert next_step(control, EDITABLE, NOW) == Create(new(0, PLACEHOLDER, True, 1))
    shown = evolve(control, posts=(doubtful(0), live(0, PLACEHOLDER)))
    assert next_step(shown, EDITABLE, NOW) == Edit(live(0, PLACEHOLDER), A.prefixed(MARKER), 0, True)


def test_a_plain_wire_gets_the_parts_themselves():
    """Rule 4: in order, one after the other, each with its text; later copies with the marker."""
    assert next_step(view(A, B), PLAIN, NOW) == Create(new(0, A, False))
    second = view(A, B, posts=(shows(0, A),))
    assert next_step(second, PLAIN, NOW) == Create(new(1, B, False, 1))
    again = view(A, B, posts=(doubtful(0),))
    assert next_step(again, PLAIN, NOW) == Create(new(0, A.prefixed(MARKER), False, 1))


def test_the_configured_words_are_used():
    """Rule 4: placeholder and marker come from the configuration."""
    wire = evolve(EDITABLE, placeholder="wait", marker="twice? ")
    step = next_step(view(A), wire, NOW)
    assert step.post.body.text == "wait"
    copy = view(A, posts=(doubtful(0), live(0, PLACEHOLDER)))
    assert next_step(copy, wire, NOW).body.text == "twice? Alpha"


def test_a_plain_wire_shows_nothing_before_the_text_is_final():
    """Rule 4: no edits, no preview."""
    assert next_step(view(A, final=False), PLAIN, NOW) is None


def test_without_reserving_nothing_is_created_before_the_text_is_final():
    """Rule 4: where placeholders or edits were refused for good, the text goes out at once, when it is final."""
    streaming = view(A, final=False, outright=True)
    assert next_step(streaming, EDITABLE, NOW) is None
    assert next_step(evolve(streaming, final=True), EDITABLE, NOW) == Create(new(0, A, False))
    marked = view(A, posts=(doubtful(0),), outright=True)
    assert next_step(marked, EDITABLE, NOW) == Create(new(0, A.prefixed(MARKER), False, 1))


def test_posts_are_shown_in_order_before_the_next_is_created():
    """Rule 4: the first part is on screen before the second has a post."""
    first = view(A, B, posts=(live(0, PLACEHOLDER),))
    assert next_step(first, EDITABLE, NOW) == Edit(live(0, PLACEHOLDER), A, 0, True)


def test_a_part_that_is_not_shown_at_all_needs_no_post():
    """Rule 4: refused to the end, or deleted by its user: the others go on without it."""
    forms = (Form.REFUSED, Form.SEEN, Form.RICH)
    assert next_step(view(A, B, C, forms=forms), PLAIN, NOW) == Create(new(2, C, False))


# -- rule 5: a live post that does not show its part -------------------------------------------------------------


def test_a_preview_is_edited_in_when_it_differs():
    """Rule 5: a preview edit is skipped when nothing changed."""
    streaming = view(V2, posts=(live(0, V1),), final=False)
    assert next_step(streaming, EDITABLE, NOW) == Edit(live(0, V1), V2, 0, True)
    assert next_step(view(V2, posts=(live(0, V2),), final=False), EDITABLE, NOW) is None


def test_the_final_edit_is_made_unless_the_post_certainly_shows_the_text():
    """Rule 5: shown is not enough, it must be confirmed; and confirmed is not enough, it must be shown."""
    assert next_step(view(A, posts=(live(0, A),)), EDITABLE, NOW) == Edit(live(0, A), A, 0, True)
    unsure = live(0, None, confirmed=0)
    assert next_step(view(A, posts=(unsure,)), EDITABLE, NOW) == Edit(unsure, A, 0, True)
    assert next_step(view(A, posts=(shows(0, A),)), EDITABLE, NOW) == Settle()


def test_parts_belong_to_live_posts_in_screen_order():
    """Rule 5: when a post is gone the following parts re-flow, and a new post takes the last one."""
    gone = view(A, B, posts=(shows(1, B),))
    assert next_step(gone, EDITABLE, NOW) == Edit(shows(1, B), A, 0, True)
    reflowed = view(A, B, posts=(live(1, A, confirmed=0),))
    assert next_step(reflowed, EDITABLE, NOW) == Create(new(1, PLACEHOLDER, True, 1))


def test_an_edit_says_whether_an_earlier_one_can_still_land():
    """Rule 5: settled means that the settle time since the last uncertain edit is over."""
    post = live(0, V1, loose=frozenset({V2.fingerprint}), loose_at=NOW)
    assert next_step(view(A, posts=(post,)), EDITABLE, NOW + 34.99) == Edit(post, A, 0, False)
    assert next_step(view(A, posts=(post,)), EDITABLE, NOW + 35) == Edit(post, A, 0, True)


def test_a_post_that_can_never_be_edited_stays_as_it_is():
    """Rule 5: it shows its part, and nothing is said to it again; asked to show another part it is tried."""
    stays = live(0, None, confirmed=0, uneditable=True)
    assert next_step(view(A, posts=(stays,)), EDITABLE, NOW) == Settle()
    moved = live(1, None, confirmed=1, uneditable=True)
    assert next_step(view(A, B, posts=(moved,)), EDITABLE, NOW) == Edit(moved, A, 0, True)


# -- rule 6: a part that is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(("form", "shown"), [(Form.PLAIN, A.plain()), (Form.NOTED, NOTE_1)])
def test_a_refused_part_is_shown_as_plain_text_then_as_a_note(form, shown):
    """Rule 6: its post carries what the platform takes of it."""
    refused = view(A, posts=(live(0, PLACEHOLDER),), forms=(form,))
    assert next_step(refused, EDITABLE, NOW) == Edit(live(0, PLACEHOLDER), shown, 0, True)
    assert next_step(view(A, forms=(form,)), PLAIN, NOW) == Create(new(0, shown, False))


def test_a_refused_preview_is_left_out():
    """Rule 6: a preview becomes plain text, never a note."""
    plain = view(A, posts=(live(0, PLACEHOLDER),), forms=(Form.PLAIN,), final=False)
    assert next_step(plain, EDITABLE, NOW) == Edit(live(0, PLACEHOLDER), A.plain(), 0, True)
    left_out = view(A, posts=(live(0, PLACEHOLDER),), forms=(Form.NOTED,), final=False)
    assert next_step(left_out, EDITABLE, NOW) is None


def test_a_note_may_be_marked():
    """Rule 6: it stands for a part that may already be there."""
    noted = view(A, posts=(doubtful(0),), forms=(Form.NOTED,))
    assert next_step(noted, PLAIN, NOW) == Create(new(0, NOTE_1.prefixed(MARKER), False, 1))


# -- rule 7: what should be gone ---------------------------------------------------------------------------------


def test_posts_beyond_the_last_part_are_deleted():
    """Rule 7: once the text is final and shown, the first of them first; then those that lost their place."""
    surplus = live(3, V1, state=PostState.SURPLUS)
    too_many = view(A, posts=(shows(0, A), surplus, live(1, V1), live(2, V1)))
    assert next_step(too_many, EDITABLE, NOW) == Delete(live(1, V1))
    assert next_step(view(A, posts=(shows(0, A), surplus)), EDITABLE, NOW) == Delete(surplus)


def test_nothing_is_deleted_while_it_streams():
    """Rule 7: a preview that shrank may grow again."""
    shrunk = view(V1, posts=(live(0, V1), live(1, V2), live(2, V2, state=PostState.SURPLUS)), final=False)
    assert next_step(shrunk, EDITABLE, NOW) is None


def test_nothing_is_deleted_before_all_is_shown():
    """Rule 7 comes after the parts: the answer goes before tidiness."""
    surplus = live(3, V1, state=PostState.SURPLUS)
    assert isinstance(next_step(view(A, posts=(surplus,)), EDITABLE, NOW), Create)


@pytest.mark.parametrize("wire", [EDITABLE, evolve(EDITABLE, deletes=False)])
def test_what_cannot_be_deleted_says_that_it_is_withdrawn(wire):
    """Rule 7: a delete refused for good, or a wire without deletes, becomes an edit to a note, once."""
    post = live(1, V1, undeletable=wire.deletes)
    assert next_step(view(A, posts=(shows(0, A), post)), wire, NOW) == Edit(post, WITHDRAWN, None, True)
    said = live(1, WITHDRAWN, undeletable=wire.deletes)
    assert next_step(view(A, posts=(shows(0, A), said)), wire, NOW) == Settle()


def test_each_that_cannot_be_deleted_is_withdrawn():
    """Rule 7: one that is done does not hide the next."""
    done = live(1, WITHDRAWN, undeletable=True)
    assert next_step(view(A, posts=(shows(0, A), done, live(2, V1))), EDITABLE, NOW) == Delete(live(2, V1))


def test_a_withdrawal_says_whether_an_earlier_edit_can_still_land():
    """Rule 7: as every edit."""
    post = live(0, V1, undeletable=True, loose=frozenset({V2.fingerprint}), loose_at=NOW)
    assert next_step(view(posts=(post,)), EDITABLE, NOW) == Edit(post, WITHDRAWN, None, False)


def test_a_wire_that_can_do_neither_leaves_it():
    """Rule 7: without edits and deletes there is nothing to be done."""
    assert next_step(view(A, posts=(shows(0, A), live(1, B))), PLAIN, NOW) == Settle()


def test_a_withdrawn_reply_leaves_nothing():
    """Rule 7: final without parts, so every post goes."""
    assert next_step(view(posts=(live(0, PLACEHOLDER),)), EDITABLE, NOW) == Delete(live(0, PLACEHOLDER))


# -- rule 8: say it again ----------------------------------------------------------------------------------------


def test_a_late_edit_is_waited_out_and_overwritten():
    """Rule 8: an uncertain edit to another text may land on top, so the text is said again after the settle time."""
    post = shows(0, A, loose=frozenset({V1.fingerprint}), loose_at=NOW)
    assert next_step(view(A, posts=(post,)), EDITABLE, NOW) == Wait(NOW + 35)
    assert next_step(view(A, posts=(post,)), EDITABLE, NOW + 34.99) == Wait(NOW + 35)
    assert next_step(view(A, posts=(post,)), EDITABLE, NOW + 35) == Edit(post, A, 0, True)


def test_an_uncertain_edit_to_the_same_text_needs_nothing():
    """Rule 8: whether it lands or not, the text is there; with another one beside it it is not."""
    same = shows(0, A, loose=frozenset({A.fingerprint}), loose_at=NOW)
    assert next_step(view(A, posts=(same,)), EDITABLE, NOW) == Settle()
    both = shows(0, A, loose=frozenset({A.fingerprint, V1.fingerprint}), loose_at=NOW)
    assert next_step(view(A, posts=(both,)), EDITABLE, NOW) == Wait(NOW + 35)


def test_a_withdrawn_note_is_said_again_too():
    """Rule 8: a late edit may land on what should be gone."""
    post = live(0, WITHDRAWN, undeletable=True, loose=frozenset({V1.fingerprint}), loose_at=NOW)
    assert next_step(view(posts=(post,)), EDITABLE, NOW) == Wait(NOW + 35)
    assert next_step(view(posts=(post,)), EDITABLE, NOW + 35) == Edit(post, WITHDRAWN, None, True)


def test_it_is_cleared_away_before_it_is_said_again():
    """Rule 7 comes before rule 8: a wait for a late edit does not keep what should be gone."""
    post = shows(0, A, loose=frozenset({V1.fingerprint}), loose_at=NOW)
    assert next_step(view(A, posts=(post, live(1, B))), EDITABLE, NOW) == Delete(live(1, B))


# -- rule 9: nothing left ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", [EDITABLE, KEYED, LOOKUP, PLAIN, PLAIN_KEYED])
def test_nothing_is_left(wire):
    """Rule 9: every part is shown, nothing uncertain can land on it: it is settled, or abandoned with its failure."""
    done = view(A, B, posts=(shows(0, A), shows(1, B), doubtful(7)))
    assert next_step(view(A, B, posts=(shows(0, A), shows(1, B))), wire, NOW) == Settle()
    assert next_step(view(), wire, NOW) == Settle()
    failed = evolve(done, posts=done.posts[:2], failure="content")
    assert next_step(failed, wire, NOW) == Abandon("content")


def test_a_streaming_reply_that_shows_all_waits_for_its_turn():
    """Rule 9: only a final text can be settled."""
    assert next_step(view(V1, posts=(live(0, V1),), final=False), EDITABLE, NOW) is None
    assert next_step(view(final=False), EDITABLE, NOW) is None


def test_the_settle_time_is_the_deadline_and_the_lateness():
    """The defaults: 10 seconds until a request is given up, 25 in which it may still be accepted."""
    assert Wire(edits=True).landing == 35.0
    assert Wire(edits=True, request_timeout=1.0, lateness=2.0).settle == 3.0
    assert Wire(edits=True, request_timeout=1.0, lateness=2.0, settle_time=9.0).settle == 9.0
