"""Proof of the random test: single mistakes planted in the core, one at a time; each must be found.

    PYTHONPATH=tests/unit python -m reconcile.mutants [N [WORDS]]

At most N (600) schedules a wire and mistake, ten times as many for the `RARE` ones, which need several coincidences.
WORDS: only mistakes whose name has them. The exit status is 1 when one was not found. Mistakes that no schedule can
tell, because they only cost time or a row, are found by the named tests; they are not in here.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

import click

from . import core
from .run import WIRES, judge


class Mistake(NamedTuple):
    """What the core says, and what it says wrongly."""

    old: str
    new: str


class Found(NamedTuple):
    """The first schedule that breaks a promise."""

    schedules: int
    wire: str
    verdict: str


MISTAKES = {
    # what a restart and a clock do
    "a restart forgets what was only intended": Mistake(
        "post.state in (PostState.INTENDED, PostState.UNKNOWN):", "post.state is PostState.UNKNOWN:"
    ),
    "a restart does not begin the settle time anew": Mistake(
        "        return evolve(post, state=PostState.UNKNOWN, ended=now)\n    if",
        "        return evolve(post, state=PostState.UNKNOWN)\n    if",
    ),
    "a restart does not begin the settle time of edits anew": Mistake(
        "return evolve(post, loose_at=now) if post.loose else post", "return post"
    ),
    "a restart forgets an edit in flight": Mistake(
        "return _loosen(view, post, post.editing, wire, now)", "return evolve(post, editing=None)"
    ),
    "the clock went back, nobody says so": Mistake("    if stepped:\n", "    if False:\n"),
    "a clock step leaves key windows open": Mistake("evolve(post, created=-inf, ended=now", "evolve(post, ended=now"),
    "a clock step does not begin settle times anew": Mistake(
        "created=-inf, ended=now, loose_at=now if post.loose else post.loose_at", "created=-inf"
    ),
    "a clock step leaves waits as they are": Mistake("min(view.not_before, now + wire.max_backoff)", "view.not_before"),
    "a clock step leaves an old sign of life": Mistake("alive_at=-inf, down_until", "down_until"),
    # creates of unknown outcome
    "a key is repeated to the end of its window": Mistake("wire.key_window - wire.landing", "wire.key_window"),
    "a key is repeated for ever": Mistake("if now < key_closes(post, wire) and", "if wire.key_window and"),
    "a key is never repeated": Mistake("if now < key_closes(post, wire) and", "if False and"),
    "an unknown create counts as refused": Mistake(
        "view = _put(view, evolve(post, state=PostState.UNKNOWN, ended=now))\n    elif",
        "view = _remove(view, post)\n    elif",
    ),
    "the end of an attempt is not kept": Mistake(
        "evolve(post, state=PostState.UNKNOWN, ended=now))\n    elif",
        "evolve(post, state=PostState.UNKNOWN))\n    elif",
    ),
    "a refused repetition counts as never sent": Mistake("(not step.again or reason in NEVER_TAKEN)", "True"),
    "a repetition refused for content stays unknown": Mistake(
        "(not step.again or reason in NEVER_TAKEN)", "not step.again"
    ),
    "a refused create stays": Mistake(
        "(not step.again or reason in NEVER_TAKEN):\n        view = _remove(view, post)",
        "(not step.again or reason in NEVER_TAKEN):\n        pass",
    ),
    "look-up without settling": Mistake("Wait(settled) if now < settled else Lookup(post)", "Lookup(post)"),
    "absent is taken for doubtful": Mistake(
        "case Reason.ABSENT, Lookup():\n            return _remove(view, post)",
        "case Reason.ABSENT, Lookup():\n            return _put(view, evolve(post, state=PostState.DOUBTFUL))",
    ),
    "content is forgotten like a placeholder": Mistake("if post.reserved or post", "if True or post"),
    "a placeholder is doubted like content": Mistake("if post.reserved or post", "if post"),
    "no sign of life is awaited": Mistake(" if view.alive_at > post.ended else Wait(inf)", ""),
    "no marker": Mistake("part.prefixed(wire.marker) if doubts(view, ordinal) else part", "part"),
    "marked copies without end": Mistake("wire.marked_copies + view.allowance", "99"),
    "held after the first marked copy": Mistake("wire.marked_copies + view.allowance", "1"),
    "marked copies are not reserved": Mistake(" or doubts(view, ordinal) > 0)", ")"),
    "replies are not reserved": Mistake("(view.reserve or not view.final", "(not view.final"),
    "reserved only when final": Mistake("(view.reserve or not view.final", "(view.final and view.reserve"),
    "a plain wire streams": Mistake("if not view.final and not wire.edits:", "if False:"),
    "keys are used twice": Mistake("serial=view.serial + 1", "serial=view.serial"),
    # edits
    "nothing is said again": Mistake("if post.loose - {target.body.fingerprint}:", "if False:"),
    "said again too early": Mistake(
        "return Wait(settled) if now < settled else _edit(target, wire, now)",
        "return Edit(post, target.body, target.ordinal, True)",
    ),
    "any edit clears the loose ones": Mistake("settled = now >= target.post.loose_at + wire.settle", "settled = True"),
    "the edit of a repeated text is not loose": Mistake("loose=post.loose | {said}", "loose=post.loose"),
    "an unknown edit shows what it showed": Mistake(", shown=None, loose=loose", ", loose=loose"),
    "an edit is not intended": Mistake(
        "    if isinstance(step, Edit):\n        post = _find(view, step.post)\n        loose",
        "    if False:\n        post = _find(view, step.post)\n        loose",
    ),
    "what a user deleted is posted again": Mistake(
        "return view if post.confirmed is None else _reform", "return view if True else _reform"
    ),
    "a deleted preview is done": Mistake(
        "case Reason.NOT_FOUND, Edit():\n            return _vanish(view, post)",
        "case Reason.NOT_FOUND, Edit():\n            return _vanish(view, evolve(post, confirmed=step.ordinal))",
    ),
    "a preview that is the final text is not confirmed": Mistake(
        "if post.shown == target.body.fingerprint and not post.loose:", "if False:"
    ),
    "a preview is confirmed": Mistake("said_final = view.final and _is", "said_final = _is"),
    "whatever is accepted is confirmed": Mistake(" and body == body_of(view, ordinal, wire)\n", "\n"),
    "loose edits are kept when they have settled": Mistake(
        "frozenset[str]() if step.settled else post.loose", "post.loose"
    ),
    # deletes
    "surplus posts stay": Mistake("    for post in unwanted(view):\n", "    for post in []:\n"),
    "the post of a refused part stays": Mistake(
        "return beyond + [post for post in view.posts if post.state is PostState.SURPLUS]", "return beyond"
    ),
    "surplus is deleted while it streams": Mistake("if step is None and view.final:", "if step is None:"),
    "a delete of unknown outcome is done": Mistake(
        "    return _delay(view, wire.max_backoff, wire, now)\n\n\ndef recover",
        "    return _remove(view, post) if isinstance(step, Delete) else _delay(view, 15, wire, now)\n\n\ndef recover",
    ),
    "a refused delete is tried for ever": Mistake("undeletable=True", "undeletable=False"),
    "a refused delete is done": Mistake(
        "return _put(view, evolve(post, undeletable=True))", "return _remove(view, post)"
    ),
    "the withdrawn note is not said again": Mistake(", *map(_withdrawal, unwanted(view))]", "]"),
    "held over what should be gone": Mistake("return _clear(view, wire, now) or Hold(", "return Hold("),
    # refused texts
    "a text that is refused is tried for ever": Mistake("Form(form + 1))\n    if form", "form)\n    if form"),
    "a refused part is skipped without a note": Mistake("Form(form + 1))\n    if form", "Form.REFUSED)\n    if form"),
    "no plain text before the note": Mistake("Form(form + 1))\n    if form", "Form(max(2, form + 1)))\n    if form"),
    "a refused text blames the text that replaced it": Mistake(
        "    if not _is_current(view, body, ordinal, wire):\n        return view\n",
        "    if ordinal >= len(view.parts):\n        return view\n",
    ),
    "delivered although a part was refused": Mistake(
        "    return evolve(view, failure=view.failure or REFUSED_CONTENT)", "    return view"
    ),
    "a refused placeholder is tried for ever": Mistake(
        "step.post.reserved:\n        return evolve(view, outright=True)", "step.post.reserved:\n        return view"
    ),
    "a refused withdrawal is tried for ever": Mistake(
        "return evolve(_remove(view, post), failure=view.failure or CANNOT_WITHDRAW)", "return view"
    ),
    "withdrawn although it could not be": Mistake(", failure=view.failure or CANNOT_WITHDRAW)", ")"),
    # too long
    "too long counts as refused": Mistake("if reason is Reason.TOO_LONG and form", "if False and form"),
    "what cannot be shorter is tried for ever": Mistake(
        "return _reform(view, ordinal, Form(view.forms[ordinal] + 1))", "return view"
    ),
    "the tail of a split part is lost": Mistake(
        "+ pieces + view.parts[ordinal + 1 :]", "+ pieces[:1] + pieces[2:] + view.parts[ordinal + 1 :]"
    ),
    "a split loses the part behind it": Mistake(
        "+ pieces + view.parts[ordinal + 1 :]", "+ pieces + view.parts[ordinal + 2 :]"
    ),
    "a split leaves forms behind": Mistake("(view.forms[ordinal],) * len(pieces)", "(view.forms[ordinal],)"),
    "a split of what was revised": Mistake("    if view.oversized != ordinal:\n        return view\n", ""),
    "a revised text is still too long": Mistake(
        "forms=forms, oversized=None)\n    if not final", "forms=forms)\n    if not final"
    ),
    # addresses
    "a dead address is asked again": Mistake("return evolve(view, dead=True)", "return view"),
    "an anchor that is gone is answered again": Mistake("return evolve(view, anchor=None)", "return view"),
    "each part answers the anchor": Mistake("view.anchor if post.ordinal == 0 else None", "view.anchor"),
    "nothing answers its anchor": Mistake("view.anchor if post.ordinal == 0 else None", "None"),
    "a thread that is gone is asked again": Mistake("return evolve(view, threaded=False)", "return view"),
    "the thread is lost": Mistake("Create(post, again, anchor, view.threaded)", "Create(post, again, anchor, False)"),
    # edits refused for good, gone creates
    "a locked post is edited for ever": Mistake(
        "return evolve(_put(view, evolve(post, state=PostState.SURPLUS)), outright=True)", "return view"
    ),
    "posts are reserved for ever though none can be edited": Mistake(
        "evolve(post, state=PostState.SURPLUS)), outright=True)", "evolve(post, state=PostState.SURPLUS)))"
    ),
    "a locked post that shows its part is replaced": Mistake("if post.confirmed == step.ordinal:", "if False:"),
    "a locked post that shows its part is edited for ever": Mistake("uneditable=True", "uneditable=False"),
    "a locked post is told its part is shown": Mistake("if post.confirmed == step.ordinal:", "if True:"),
    "outright content while it streams": Mistake("if view.outright and not view.final:", "if False:"),
    "a locked post is simply forgotten": Mistake(
        "return evolve(_put(view, evolve(post, state=PostState.SURPLUS)), outright=True)",
        "return evolve(_remove(view, post), outright=True)",
    ),
    "accepted and gone is posted again": Mistake(
        "_vanish(view, evolve(post, confirmed=confirmed))", "_vanish(view, post)"
    ),
    "an accepted placeholder that is gone counts as seen": Mistake(
        "_vanish(view, evolve(post, confirmed=confirmed))", "_vanish(view, evolve(post, confirmed=ordinal))"
    ),
    # expiry and the operator
    "nothing expires": Mistake("return view.final and not view.expired and not placed(view)", "return False"),
    "what is all shown expires": Mistake("not view.expired and not placed(view)", "not view.expired"),
    "a preview expires": Mistake(
        "return view.final and not view.expired and", "return bool(view.parts) and not view.expired and"
    ),
    "expired is created on": Mistake("if taken >= len(ordinals) or view.expired:", "if taken >= len(ordinals):"),
    "an expired key is repeated": Mistake(
        "< key_closes(post, wire) and not view.expired:", "< key_closes(post, wire):"
    ),
    "expiry takes back what is shown": Mistake("    kept = confirmed_places(view)\n    cut", "    kept = 0\n    cut"),
    "no notice in the reserved post": Mistake("if len(places(view)) > kept else ()", "if False else ()"),
    "a notice without a reserved post": Mistake("if len(places(view)) > kept else ()", "if True else ()"),
    "an expired obligation counts as delivered": Mistake(
        "posts=posts, oversized=None, failure=EXPIRED)", "posts=posts, oversized=None)"
    ),
    "expired without clearing away": Mistake("return view if restless else evolve(", "return evolve("),
    "the notice is marked": Mistake("        if post.state is not PostState.DOUBTFUL or post.ordinal < cut\n", ""),
    "a shown notice is owed": Mistake(" or not placed(view)\n", " or True\n"),
    "no notice is ever owed": Mistake(
        "    if view.expired:\n        return view.parts", "    if view.expired:\n        return False and view.parts"
    ),
    "a release grants nothing": Mistake("allowance=view.allowance + 1", "allowance=view.allowance"),
    "a release grants all": Mistake("allowance=view.allowance + 1", "allowance=view.allowance + 9"),
    # the lane's rule
    "a final holds up nothing": Mistake("            if view.final:\n                break\n", ""),
    "a streaming reply holds up all": Mistake(
        "            if view.final:\n                break\n", "            break\n"
    ),
    "a streaming reply holds up nothing": Mistake("            streaming = True", "            pass"),
    "what waits to say it again holds up the next": Mistake("        if not placed(view):\n", "        if True:\n"),
    "placed when every part has a post": Mistake(
        "view.final and confirmed_places(view) == len(showable(view))",
        "view.final and len(places(view)) >= len(showable(view))",
    ),
    "a control that passed is not completed first": Mistake(
        "sorted(views, key=lambda view: not _begun_control(view))", "views"
    ),
    "previews before finals": Mistake("key=lambda pair: not pair[0].final", "key=lambda pair: pair[0].final"),
    # backoff
    "no backoff": Mistake("pause = min(2.0 ** min(view.attempts, 9), longest)", "pause = 0.0"),
    "backoff without end": Mistake(
        "pause = min(2.0 ** min(view.attempts, 9), longest)", "pause = 2.0 ** min(view.attempts, 9)"
    ),
    "retry_after is not kept": Mistake("if outcome.retry_after is not None:", "if False:"),
    # endings
    "withdrawn is called delivered": Mistake(
        "Ending.DELIVERED if view.parts else Ending.WITHDRAWN", "Ending.DELIVERED"
    ),
}

RARE = frozenset(
    {
        "a restart does not begin the settle time anew",
        "an unknown edit shows what it showed",
        "the withdrawn note is not said again",
        "withdrawn although it could not be",
        "a split of what was revised",
        "a revised text is still too long",
        "a restart does not begin the settle time of edits anew",
        "the notice is marked",
    }
)
"""They need several coincidences."""


def find(mistake: Mistake, schedules: int) -> Found | None:
    """The first schedule of any wire that finds the planted mistake."""
    planted = core.mistaken(*mistake)
    for seed in range(schedules):
        for wire in WIRES:
            if found := judge(seed, wire, planted):
                return Found(seed + 1, wire, found[0])
    return None


@click.command()
@click.argument("schedules", default=600)
@click.argument("words", nargs=-1)
def main(schedules: int, words: tuple[str, ...]) -> None:
    """Plants each mistake and looks for a schedule that finds it."""
    missed = 0
    for name, mistake in MISTAKES.items():
        if " ".join(words) not in name:
            continue
        found = find(mistake, schedules * 10 if name in RARE else schedules)
        missed += found is None
        result = f"{found.schedules:5} {found.wire:16} {found.verdict[:70]}" if found else "NOT FOUND"
        click.echo(f"{name:62} {result}")
    click.echo(f"{missed} not found within {schedules} schedules a wire (the rare ones: {schedules * 10})")
    sys.exit(missed > 0)


if __name__ == "__main__":
    main()
