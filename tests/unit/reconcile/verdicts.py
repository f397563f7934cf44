"""The verdicts on a schedule, from ground truth: what the platform holds, what it was asked, what was durable.

Some are given at once, while the schedule runs; the others a thousand seconds after the last obligation ended.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from hermes_trio.delivery.steps import Create, Doubt, Edit, Expire, Lookup, Request, Settle, Step
from hermes_trio.platforms.outcomes import Accepted, Outcome, Reason, Refused, Unknown
from hermes_trio.text.body import Body

from .platform import SERVER_WINDOW, look

if TYPE_CHECKING:
    from .run import Run

MARKER = "[may be a duplicate] "
PLACEHOLDER = "…"
NOTICE = "[this answer could not be delivered in time]"


class Wrong(Exception):
    """A promise was broken."""


def describe(step: Step) -> str:
    """A step in a line of the timeline."""
    words = [type(step).__name__]
    if isinstance(step, Request):
        words += [step.post.key, step.post.message_id or "", said(step)]
    if isinstance(step, Create):
        words += ["again"] * step.again + [f"to {step.reply_to}"] * (step.reply_to is not None)
    return " ".join(words) + str(getattr(step, "reason", ""))


def said(step: Request) -> str:
    """The text that a request carries."""
    if isinstance(step, Edit):
        return look(step.body)
    return look(step.post.body) if isinstance(step, Create) and step.post.body else ""


class Judge:
    """Watches one run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.core = run.core
        self.platform = run.platform
        self.wire = run.wire
        self.operations = 0
        self.clock_steps = 0
        self.final_at: dict[str, float] = {}
        self.first_create: dict[str, float] = {}
        """When the first post of an obligation, and the post of a key, was asked for."""
        self.fates: dict[tuple[str, int], dict[str, bool]] = {}
        """Of each part: the keys of the creates that carried it, and whether they were provably unseen."""
        self.uncertain: set[str] = set()
        """Keys of placeholders whose create was once uncertain."""
        self.attempted: dict[str, float] = {}
        """Of each key: the end of its last attempt of unknown outcome."""
        self.deleted: list[tuple[str, str, bool, str]] = []
        """What users deleted: obligation, text, was it confirmed, message."""
        self.closed: tuple[float, int, int] = (-inf, 0, 0)
        """A rate limit that was recorded: until when, in which life, after how many steps of the clock."""
        self.operated: dict[str, int] = {}
        """What the operator decided about, and how often it was released."""
        self.kept: dict[str, int] = {}
        """Of each expired obligation: how many of its parts were on screen."""
        self.notice_due: dict[str, bool] = {}
        self.anchorless: set[str] = set()
        self.threadless: set[str] = set()

    # -- while it runs -------------------------------------------------------------------------------------------

    def choice(self, chosen: Any) -> None:
        """What may go on does; finals and control before previews; what is all shown and waits holds up nothing."""
        views = [view for view in self.run.memory.values() if not view.ended]
        begun = [view for view in views if not view.reply and view.posts and not self.all_shown(view)]
        streaming = False
        for view in begun[:1] or views:
            if view.reply and streaming:
                continue
            works = isinstance(self.core.next_step(view, self.wire, self.run.now), Request)
            if works and (chosen is None or (view.final and not chosen.final)):
                raise Wrong(f"{view.id} could go on, but {chosen and chosen.id} was chosen")
            if not self.all_shown(view):
                if view.final:
                    return
                streaming = True

    def all_shown(self, view: Any) -> bool:
        """Every part stands on the screen, as far as the process can know."""
        return view.final and all(self.shown(view, ordinal) for ordinal, form in enumerate(view.forms) if form < 3)

    def shown(self, view: Any, ordinal: int) -> bool:
        """This part stands on the screen."""
        text = self.core.body_of(view, ordinal, self.wire).fingerprint
        return any(post.confirmed == ordinal or (post.shown == text and not post.loose) for post in view.posts)

    def rows(self, view: Any, step: Step) -> None:
        """A change of rows only."""
        if isinstance(step, Doubt) and self.run.life <= self.attempted.get(step.post.key, 0):
            raise Wrong(f"{step.post.key}: doubted without a sign of life")
        if isinstance(step, Expire) and (self.run.now < view.expires or self.all_shown(view) or not view.final):
            raise Wrong(f"{view.id}: expired at {self.run.now}, {view.expires} was agreed")
        if not isinstance(step, Settle):
            return
        for post in view.posts:
            message = self.platform.messages.get(post.message_id)
            if message and post.shown not in (None, message.body.fingerprint):
                raise Wrong(f"{post.key}: settled, but the screen shows {look(message.body)}")
            for time, kind, key, body in self.platform.pending:
                landing = time > self.platform.t and kind is Edit and key == post.key and body is not None
                if landing and body.fingerprint != post.shown and post.message_id not in self.platform.locked:
                    raise Wrong(f"{view.id}: settled, but {look(body)} is still under way")

    def split(self, name: str, ordinal: int, more: int) -> None:
        """A part became several: what is known of the later ones moves."""
        moved = {
            (owner, part + more if owner == name and part > ordinal else part): fates
            for (owner, part), fates in self.fates.items()
        }
        self.fates = moved

    def expired(self, before: Any, after: Any) -> None:
        """An obligation was given up: what is on screen stays, a reserved post says so, nothing is made any more."""
        showable = [ordinal for ordinal, form in enumerate(before.forms) if form < 3]
        live = [post for post in before.posts if post.state == "live"]
        kept = 0
        while kept < min(len(live), len(showable)) and live[kept].confirmed == showable[kept]:
            kept += 1
        self.kept[before.id] = showable[kept]
        self.notice_due[before.id] = len(live) > kept
        parts = before.parts[: showable[kept]] + (Body(NOTICE),) * (len(live) > kept)
        if after.parts != parts:
            raise Wrong(f"{before.id}: expired with {[part.text for part in after.parts]}")

    def request(self, view: Any, step: Request) -> None:
        """A request is about to be made."""
        self.operations += 1
        if self.operations > 400:
            raise Wrong("more than 400 operations")
        until, *when = self.closed
        if self.platform.t < until - 0.01 and when == [self.run.lives, self.clock_steps]:
            raise Wrong(f"asked while rate limited until {until:.2f}")
        awaited = Create if isinstance(step, Lookup) else Edit if getattr(step, "settled", False) else None
        for time, kind, key, _ in self.platform.pending:
            if time > self.platform.t and kind is awaited and key == step.post.key:
                raise Wrong(f"{describe(step)}: too early, {kind.__name__} is still under way")
        if isinstance(step, Create):
            self.create(view, step)
        self.marker(view, step)
        self.deletions(view, step)

    def create(self, view: Any, step: Create) -> None:
        """A create is about to be made."""
        post = step.post
        t = self.platform.t
        text = said(step)
        self.first_create.setdefault(post.key, t)
        self.first_create.setdefault(view.id, t)
        if text == PLACEHOLDER:
            self.uncertain.add(post.key)
        if not step.again and not view.final and text != PLACEHOLDER:
            raise Wrong("content created while the turn streams")
        if step.again and t + self.wire.landing > self.first_create[post.key] + SERVER_WINDOW:
            raise Wrong(f"{post.key}: repeated so late that its server may have forgotten it")
        over = view.final and self.run.now >= view.expires and not self.all_shown(view)
        if over or view.id in self.kept:
            raise Wrong(f"{post.key}: created after its time was over")
        anchored = view.reply and post.ordinal == 0 and view.id not in self.anchorless
        if step.reply_to != (f"anchor of {view.id}" if anchored else None):
            raise Wrong(f"{post.key}: answers {step.reply_to}")
        if step.threaded == (view.id in self.threadless):
            raise Wrong(f"{post.key}: thread {step.threaded}")

    def marker(self, view: Any, step: Request) -> None:
        """Only what may be a duplicate is marked."""
        post = step.post
        text = said(step)
        ordinal = step.ordinal if isinstance(step, Edit) else post.ordinal
        fates = self.fates.setdefault((view.id, -1 if ordinal is None else ordinal), {})
        if text.startswith(MARKER):
            others = (key for key, unseen in fates.items() if not unseen)
            if not any(key != post.key or isinstance(step, Edit) for key in others):
                raise Wrong(f"{text}: marked, but every earlier create was provably unseen")
        if isinstance(step, Create) and text != PLACEHOLDER:
            fates[post.key] = False

    def deletions(self, view: Any, step: Request) -> None:
        """What a user has seen and deleted is not posted again."""
        again = isinstance(step, Create) and step.again
        text = said(step).removeprefix(MARKER)
        for owner, deleted, sure, message in self.deleted:
            same = owner == view.id and text == deleted.removeprefix(MARKER)
            if same and sure and message != step.post.message_id and not again:
                raise Wrong(f"{deleted}: posted again after its user deleted it")

    def outcome(self, name: str, step: Request, outcome: Outcome) -> None:
        """What the process knows from here on."""
        key = step.post.key
        if isinstance(outcome, Unknown):
            self.attempted[key] = self.platform.t
        elif isinstance(outcome, Accepted):
            if isinstance(step, Create | Lookup):
                self.uncertain.discard(key)
            if outcome.gone and said(step) != PLACEHOLDER:
                self.deleted.append((name, said(step), True, ""))
        else:
            self.refusal(name, step, outcome)

    def refusal(self, name: str, step: Request, outcome: Refused) -> None:
        """The platform declined: what was refused at its first attempt was provably never seen."""
        key = step.post.key
        if (isinstance(step, Create) and not step.again) or outcome.reason is Reason.ABSENT:
            self.uncertain.discard(key)
            for fates in self.fates.values():
                if key in fates:
                    fates[key] = True
        if outcome.reason is Reason.RATE_LIMITED:
            assert outcome.retry_after is not None
            self.closed = (self.platform.t + outcome.retry_after, self.run.lives, self.clock_steps)
        if outcome.reason is Reason.ANCHOR_GONE:
            self.anchorless.add(name)
        if outcome.reason is Reason.TOPIC_GONE:
            self.threadless.add(name)

    def deleted_by_user(self, message: str) -> None:
        """A user is about to delete this message."""
        shown = self.platform.messages[message]
        name = shown.key.split(".")[0]
        view = self.run.durable[name]
        sure = False
        for target in self.core.targets(view, self.wire):
            if target.post.message_id == message and target.post.confirmed == target.ordinal:
                sure = True
                self.deleted.append((name, look(target.body), True, message))
        self.deleted.append((name, look(shown.body), False, message))
        self.platform.note("  user deletes", message, look(shown.body), "confirmed" if sure else "unconfirmed")

    # -- at the end ----------------------------------------------------------------------------------------------

    def end(self) -> None:
        """What the platform shows, a thousand seconds after the last obligation ended."""
        self.platform.advance(self.platform.t + 1000)
        places = {view.id: self.view(view) for view in self.run.memory.values()}
        self.order(places)

    def order(self, places: dict[str, list[str]]) -> None:
        """Parts in order and contiguous, obligations in order of arrival; what sees an operator is exempt."""
        views = [view for view in self.run.memory.values() if view.id not in self.operated]
        for number, first in enumerate(views):
            mine = places[first.id]
            if mine != sorted(mine):
                raise Wrong(f"{first.id}: parts out of order {mine}")
            if not mine:
                continue
            for second in views:
                between = [m for m in places[second.id] if min(mine) < m < max(mine) and second is not first]
                if not first.reply and any(self.sent(m) > self.sent(min(mine)) for m in between):
                    raise Wrong(f"{second.id} inside {first.id}: {places}")
            for second in views[number + 1 :]:
                ends = [self.final_at[view.id] for view in views[: number + 1] if view.reply or view is first]
                passed = not second.reply and self.first_create.get(second.id, inf) < max(ends)
                if not passed and places[second.id] and max(mine) > min(places[second.id]):
                    raise Wrong(f"{second.id} stands before the end of {first.id}: {places}")

    def view(self, view: Any) -> list[str]:
        """One obligation. Returns the messages of its parts in part order."""
        if not view.ended:
            raise Wrong(f"{view.id} is still open")
        if view.dead:
            if view.ended != "abandoned" or self.core.owes_notice(view):
                raise Wrong(f"{view.id}: {view.ended} on a dead address")
            return []
        screen = self.screen(view)
        self.strays(view, screen)
        expected = self.run.expected[view.id]
        main: list[str] = []
        unshowable = False
        for ordinal, part in enumerate(expected):
            texts = [part, part.plain(), Body(f"[part {ordinal + 1} could not be shown]")]
            if view.ended == "delivered" and "L" in part.text:
                raise Wrong(f"{part.text}: was not split")
            text = next((look(text) for text in texts if not self.platform.takes(text)), None)
            if text is None:
                unshowable = True
            else:
                main += self.part(view, ordinal, text, screen)
        if view.id in self.kept:
            self.expiry(view, screen)
        self.stale(view, screen)
        self.ending(view, unshowable)
        if view.id not in self.kept and list(view.parts) != expected:
            raise Wrong(f"{view.id}: its parts are {view.parts}")
        return main

    def screen(self, view: Any) -> dict[str, str]:
        """What stands there of this obligation, without what can neither be changed nor removed."""
        ours = {post.message_id: post for post in view.posts}
        stuck = {message for message, post in ours.items() if post.uneditable}
        if self.platform.undeletable or not self.wire.deletes:
            stuck |= {message for message in self.platform.locked if message not in ours}
        return {
            message: look(shown.body)
            for message, shown in self.platform.messages.items()
            if shown.key.split(".")[0] == view.id and message not in stuck
        }

    def strays(self, view: Any, screen: dict[str, str]) -> None:
        """At most one stray placeholder for each uncertain create, none where the wire can ask."""
        strays = [message for message, text in screen.items() if text == PLACEHOLDER]
        for message in strays:
            del screen[message]
        lost = {key for key in self.uncertain if key.split(".")[0] == view.id}
        if view.ended == "abandoned":
            return
        if len(strays) > len(lost):
            raise Wrong(f"{view.id}: {len(strays)} stray placeholders, {len(lost)} uncertain creates")
        if strays and (self.wire.lookup or (self.wire.key_window and all(map(self.in_window, lost)))):
            raise Wrong(f"{view.id}: a stray placeholder on a wire that can ask")

    def part(self, view: Any, ordinal: int, text: str, screen: dict[str, str]) -> list[str]:
        """The copies of one part: taken off the screen, and returned as far as we made them on purpose."""
        wire = self.wire
        plain = [message for message in screen if screen[message] == text]
        marked = [message for message in screen if screen[message] == MARKER + text]
        for message in plain + marked:
            del screen[message]
        if len(plain) > 1:
            raise Wrong(f"{text}: {len(plain)} unmarked copies")
        if len(marked) > wire.marked_copies + self.operated.get(view.id, 0):
            raise Wrong(f"{text}: {len(marked)} marked copies")
        if marked and wire.lookup:
            raise Wrong(f"{text}: marked on a wire with look-up")
        if marked and wire.edits and not view.outright and (view.reserve or len(marked) > 1):
            raise Wrong(f"{text}: marked although reserved, or twice")
        if marked and wire.key_window and all(map(self.in_window, self.fates.get((view.id, ordinal), ()))):
            raise Wrong(f"{text}: marked inside the key window")
        self.loss(view, ordinal, text, plain + marked)
        if view.id in self.kept:
            return [
                post.message_id
                for post in view.posts
                if post.confirmed == ordinal and post.message_id in plain + marked
            ]
        ours = {post.message_id for post in view.posts}
        doubted = any(post.state == "doubtful" and post.ordinal == ordinal for post in view.posts)
        return [m for m in plain + marked if m in ours or not doubted]

    def loss(self, view: Any, ordinal: int, text: str, copies: list[str]) -> None:
        """A part that is not there was deleted by a user, or its obligation is held, or was given up before it."""
        deleted = any(owner == view.id and gone.removeprefix(MARKER) == text for owner, gone, *_ in self.deleted)
        stuck = any(post.uneditable and post.confirmed == ordinal for post in view.posts)
        late = ordinal >= self.kept.get(view.id, ordinal + 1)
        given_up = view.ended == "held" or view.failure == "dropped by the operator"
        if not (copies or deleted or stuck or late or given_up):
            raise Wrong(f"{text}: lost")

    def expiry(self, view: Any, screen: dict[str, str]) -> None:
        """An expired obligation says so once, where a post was reserved; else it owes a notice."""
        notices = [message for message in screen if screen[message] == NOTICE]
        for message in notices:
            del screen[message]
        if view.ended != "abandoned" or view.failure != "expired" or len(notices) > 1:
            raise Wrong(f"{view.id}: {view.ended}, {view.failure}, {len(notices)} notices")
        said = any(owner == view.id and text == NOTICE for owner, text, *_ in self.deleted) or bool(notices)
        vanished = any(owner == view.id for owner, *_ in self.deleted)
        locked = any(post.message_id in self.platform.locked for post in view.posts) or view.outright
        if self.notice_due[view.id] and not (said or vanished or locked):
            raise Wrong(f"{view.id}: no notice in its reserved post")
        if (notices and self.core.owes_notice(view)) or not (said or locked or self.core.owes_notice(view)):
            raise Wrong(f"{view.id}: {len(notices)} notices, owes one: {self.core.owes_notice(view)}")

    def stale(self, view: Any, screen: dict[str, str]) -> None:
        """Nothing else is left, except where the platform refuses everything."""
        left = dict(screen)
        if self.platform.undeletable or not self.wire.deletes:
            left = {m: text for m, text in left.items() if text != "[withdrawn]" and not self.platform.no_notes}
        if left:
            raise Wrong(f"{view.id}: stale {left}")

    def ending(self, view: Any, unshowable: bool) -> None:
        """It ended as it had to."""
        expected = "delivered" if view.parts else "withdrawn"
        if view.ended == "held":
            mine = [fates for (name, _), fates in self.fates.items() if name == view.id]
            counts = [sum(not unseen for unseen in fates.values()) for fates in mine]
            reserved = self.wire.edits and not view.outright
            if self.wire.lookup or reserved or max(counts) <= self.wire.marked_copies + self.operated.get(view.id, 0):
                raise Wrong(f"{view.id}: held after {max(counts)} copies")
        elif view.ended == "abandoned":
            stuck = self.platform.undeletable and (self.platform.no_notes or self.platform.locked)
            if not (unshowable or stuck or view.id in self.kept or view.id in self.operated):
                raise Wrong(f"{view.id}: abandoned without need: {view.failure}")
        elif view.ended != expected:
            raise Wrong(f"{view.id}: {view.ended}")
        if unshowable and view.ended == "delivered":
            raise Wrong(f"{view.id}: delivered, but a part was never shown")

    def sent(self, message: str) -> float:
        """When this message was first asked for."""
        return self.first_create[self.platform.messages[message].key]

    def in_window(self, key: str) -> bool:
        """This key could have been repeated until it was answered: the platform was back, the clock was sane."""
        used = self.first_create[key]
        return not self.clock_steps and self.run.quiet < used + SERVER_WINDOW - self.wire.landing - 45
