"""The lane's rule: which obligation of an address goes on, and with which step."""

from __future__ import annotations

from math import inf

from attrs import evolve

from hermes_trio.delivery.reconcile import next_step, pick
from hermes_trio.delivery.steps import Abandon, Create, Delete, Edit, Expire, Settle, Wait
from hermes_trio.delivery.view import Ending, PostState

from .build import EDITABLE, LOOKUP, NOW, PLACEHOLDER, PLAIN, A, B, C, live, shows, unknown, view

LATE = frozenset({B.fingerprint})


def reply(name, *parts, **more):
    """A reply of this name, final unless said otherwise."""
    return evolve(view(*parts, **more), id=name)


def control(name, *parts, **more):
    """A control message."""
    return evolve(view(*parts, **more), id=name, kind="control", reserve=False)


def picked(*views, wire=EDITABLE):
    """The name of the obligation that goes on, and its step."""
    chosen, step = pick(views, wire, NOW)
    if chosen is None:
        return None, step
    assert step == next_step(chosen, wire, NOW)
    return chosen.id, step


def test_nothing_to_do():
    """Without work there is neither an obligation nor a wait."""
    assert picked() == (None, None)
    assert picked(reply("one", A, ended=Ending.HELD)) == (None, None)
    assert picked(reply("one", A, final=False), wire=PLAIN) == (None, None)


def test_the_first_that_arrived_goes_first():
    """Replies go on in order of arrival, whatever the names."""
    name, step = picked(reply("z", A), reply("a", B))
    assert (name, type(step)) == ("z", Create)


def test_a_final_holds_up_all_later_ones_until_it_is_placed():
    """Also while it waits: nothing passes a final text that is not confirmed on screen."""
    waiting = reply("one", A, not_before=NOW + 9)
    assert picked(waiting, reply("two", B), control("three", C)) == (None, Wait(NOW + 9))
    unconfirmed = reply("one", A, posts=(live(0, A),), not_before=NOW + 9)
    assert picked(unconfirmed, control("two", B)) == (None, Wait(NOW + 9))


def test_what_waits_with_all_parts_shown_holds_up_nothing():
    """Re-assertion and deletes come beside the next obligation."""
    shown = reply("one", A, posts=(shows(0, A, loose=LATE, loose_at=NOW),))
    assert picked(shown)[1] == Wait(NOW + 35)
    name, step = picked(shown, reply("two", B))
    assert (name, type(step)) == ("two", Create)
    deleting = reply("one", A, posts=(shows(0, A), live(1, B)), not_before=NOW + 5)
    assert picked(deleting, reply("two", B))[0] == "two"


def test_what_ended_or_is_held_holds_up_nothing():
    """The next one goes on."""
    for ending in Ending:
        assert picked(reply("one", A, ended=ending), reply("two", B))[0] == "two"


def test_a_streaming_reply_holds_up_replies_only():
    """Control messages pass it, later replies do not, streaming or final."""
    streaming = reply("one", A, posts=(live(0, A),), final=False)
    assert picked(streaming, reply("two", B)) == (None, None)
    assert picked(streaming, reply("two", B, final=False)) == (None, None)
    name, step = picked(streaming, reply("two", B), control("three", C))
    assert (name, step.post.body) == ("three", C)


def test_a_control_that_passed_is_completed_first():
    """It has a post and is not complete, so nothing comes between its parts, whatever arrived before it."""
    streaming = reply("one", A, posts=(live(0, B),), final=False)
    begun = control("two", B, C, posts=(shows(0, B),))
    name, step = picked(streaming, begun)
    assert (name, step.post.body) == ("two", C)
    final = evolve(streaming, final=True)
    assert picked(final, begun)[0] == "two"
    assert picked(final, evolve(begun, not_before=NOW + 3)) == (None, Wait(NOW + 3))


def test_a_control_without_a_post_waits_for_an_earlier_final():
    """Only one that has begun is completed first; one that is complete holds up nothing."""
    final = reply("one", A)
    assert picked(final, control("two", B))[0] == "one"
    done = control("two", B, posts=(shows(0, B, loose=LATE, loose_at=NOW),))
    assert picked(final, done)[0] == "one"


def test_a_reply_that_begun_is_not_put_first():
    """Only control messages pass: a later reply with a post waits for an earlier one."""
    begun = reply("two", B, posts=(live(0, PLACEHOLDER),))
    assert picked(reply("one", A), begun)[0] == "one"


def test_finals_go_before_previews():
    """A control message that could go on goes before the next preview of what streams."""
    streaming = reply("one", A, posts=(live(0, B),), final=False)
    name, step = picked(streaming, control("two", C))
    assert (name, type(step)) == ("two", Create)
    assert picked(streaming) == ("one", Edit(live(0, B), A, 0, True))


def test_among_finals_the_earlier_goes_first():
    """Clearing away after a placed reply comes before what follows it."""
    placed_one = reply("one", A, posts=(shows(0, A), live(1, B)))
    assert picked(placed_one, reply("two", B)) == ("one", Delete(live(1, B)))


def test_the_shortest_wait_counts():
    """When all that may go on waits, the lane sleeps until the first of them."""
    streaming = reply("one", A, final=False, not_before=NOW + 9)
    assert picked(streaming, control("two", B, not_before=NOW + 4)) == (None, Wait(NOW + 4))
    assert picked(streaming, control("two", B, not_before=NOW + 20)) == (None, Wait(NOW + 9))
    stuck = control("two", B, posts=(unknown(0, B),), final=True)
    assert picked(stuck, wire=PLAIN) == (None, Wait(inf))


def test_a_wait_that_may_not_be_passed_is_not_counted():
    """What is held up does not wake the lane."""
    first = reply("one", A, not_before=NOW + 9)
    assert picked(first, control("two", B, not_before=NOW + 1)) == (None, Wait(NOW + 9))


def test_changes_of_rows_are_steps_too():
    """Settling, expiring and abandoning are picked like a request."""
    assert picked(reply("one", A, posts=(shows(0, A),))) == ("one", Settle())
    assert picked(reply("one", A, expires=NOW), reply("two", B)) == ("one", Expire())
    assert picked(reply("one", A, dead=True)) == ("one", Abandon("dead address"))


def test_a_surplus_post_of_unknown_outcome_is_settled_beside_the_next():
    """A withdrawn reply is placed, so that what it still has to clear away holds up nothing."""
    withdrawn = reply("one", posts=(unknown(0),))
    assert picked(withdrawn, reply("two", B), wire=LOOKUP)[0] == "two"
    surplus = reply("one", A, posts=(shows(0, A), live(1, B, state=PostState.SURPLUS)), not_before=inf)
    assert picked(surplus, control("two", B))[0] == "two"
