# ruff: noqa: RUF009 -- value(), table(), rows() and named() make attrs fields; that is no shared default
"""Every key of the configuration, with its meaning, its range and its default, as frozen classes.

A program may construct these classes itself; what a file would be refused for is refused there too, with ConfigError.
Durations are seconds (a text such as "5m" is converted). Contradictions between keys are found by `contradictions`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Literal

from attrs import Factory, frozen
from platformdirs import user_data_path

from hermes_trio.access import Access
from hermes_trio.config.errors import ConfigError, Problem
from hermes_trio.config.kinds import Choice, Directory, Duration, Flag, Hidden, Patterns, Text, Url, Whole, seconds
from hermes_trio.config.reading import read
from hermes_trio.config.secret import Secret
from hermes_trio.config.settings import named, rows, table, value

LATENESS = 25.0
"""Seconds after which a chat service has never been seen to carry out a request that its client gave up."""
APP = "hermes-trio"
"""The name of our directories."""
OPENAI = "https://api.openai.com/v1"
TELEGRAM = "https://api.telegram.org"
TOKEN_SHAPE = "a bot's token is digits, a colon and letters, as @BotFather gives it"
SHORTEST = 0.001
"""Seconds. The shortest deadline: one millisecond, because zero would mean never and at once in different places."""


class Checked:
    """A configuration class whose keys may contradict each other."""

    __slots__ = ()

    def contradictions(self) -> Iterator[Problem]:
        """The contradictions, with paths relative to this table."""
        return iter(())

    def __attrs_post_init__(self) -> None:
        if problems := tuple(self.contradictions()):
            raise ConfigError(problems)


@frozen(kw_only=True)
class ModelConfig(Checked):
    """`[model]`: the language model that answers."""

    kind: Literal["openai", "demo"] = value(
        Choice(("openai", "demo")),
        "What answers: a server with OpenAI's chat completions API, or the built-in offline demonstration.",
        default="openai",
    )
    base_url: str = value(Url(), "The root of the server's API; `/chat/completions` is appended to it.", default=OPENAI)
    name: str = value(
        Text(longest=200),
        "The model's name, as the server knows it. The demonstration needs none.",
        default="",
        default_in_words='none; it must be given for the kind "openai"',
    )
    api_key: Secret | None = value(
        Hidden(), "The key that the server asks for; a server on your own machine may need none.", default=None
    )
    timeout: float = value(
        Duration(SHORTEST, 86400, "a model that takes longer than a day will not answer"),
        "How long one request may take from its start to the end of its answer.",
        default=600.0,
    )
    idle_timeout: float = value(
        Duration(SHORTEST, 3600, "a stream that is silent for an hour is dead"),
        "How long the server may send nothing while it answers.",
        default=60.0,
    )
    retries: int = value(
        Whole(0, 10, "each one makes the user wait longer, and may cost money"),
        "How often a failed request is repeated before the next model is asked, or the user is told.",
        default=2,
    )
    context: int = value(
        Whole(0, 100_000_000, "no model reads more"),
        "How many tokens the model reads; a conversation that comes near it is replaced by a summary. 0: unknown, then "
        "that happens when the server refuses.",
        default=0,
    )
    finish: Literal["required", "optional"] = value(
        Choice(("required", "optional")),
        "Whether the server must say that its answer is complete. With optional, the proper end of the stream is "
        "proof enough; some local servers need that.",
        default="required",
    )
    images: bool = value(
        Flag(),
        "Whether the model takes images; if not, it is told in words that one came.",
        default=False,
    )
    fallback: tuple[ModelConfig, ...] = rows(
        lambda: ModelConfig, "Models to ask in this order when this one fails; the same keys, without a fallback."
    )

    def contradictions(self) -> Iterator[Problem]:
        if self.kind == "openai" and not self.name.strip():
            yield Problem(
                "name", 'missing: the server must be told which model (for kind "openai")', concerns=("name", "kind")
            )
        for index, model in enumerate(self.fallback):
            if model.fallback:
                yield Problem(
                    f"fallback[{index}].fallback", "a fallback has no fallback of its own; list them in a row"
                )


@frozen(kw_only=True)
class ChatConfig(Checked):
    """`[chat]`: how the bot behaves towards a user."""

    system: str = value(
        Text(),
        "What the model is told about its part before every conversation.",
        default="You are a helpful assistant in a chat. Answer in the language of the user, to the point.",
    )
    busy: Literal["interrupt", "queue", "steer"] = value(
        Choice(("interrupt", "queue", "steer")),
        "What a message does that arrives while an answer is being written: it ends that answer and is answered "
        "instead, it waits for its turn, or it is handed to the running one.",
        default="interrupt",
    )
    groups: Literal["addressed", "always"] = value(
        Choice(("addressed", "always")),
        "What is answered where several people speak: what addresses the bot (by a mention, a reply, a command), or "
        "everything. What is not answered is read by the model as context.",
        default="addressed",
    )
    others_interrupt: bool = value(
        Flag(),
        "Whether, where several people speak, the message of one may end the answer to another.",
        default=False,
    )
    stream: bool = value(Flag(), "Whether a reply is shown while it is being written.", default=True)
    placeholder: str = value(
        Text(longest=64, blank=False),
        "The text of a message that is reserved for a reply before there is any text of it; at most 64 characters.",
        default="…",
    )


@frozen(kw_only=True)
class DeliveryConfig(Checked):
    """`[delivery]`: how replies are brought to the screen."""

    reserve: Literal["turns", "all", "off"] = value(
        Choice(("turns", "all", "off")),
        "Which messages are reserved by a placeholder first, so that a lost acknowledgement costs no second copy: "
        "replies to messages; also answers to commands, notices and pushes; none.",
        default="turns",
    )
    on_uncertain: Literal["mark", "hold"] = value(
        Choice(("mark", "hold")),
        "What happens to a message that may or may not have been delivered, where the platform cannot tell: it is "
        "sent again with a visible mark, or kept for the operator.",
        default="mark",
    )
    settle: float | None = value(
        Duration(0, 3600, "the chat waits this long after every uncertain message"),
        "How long after the start of an attempt of unknown outcome the platform may still carry it out. At least "
        "request_timeout of every platform, and its lateness where that is written.",
        default=None,
        default_in_words="request_timeout plus lateness of each platform",
    )
    backoff: float = value(
        Duration(SHORTEST, 15, "a longer pause could outlast the time in which a platform recognises a repetition"),
        "The longest pause between two attempts.",
        default=15.0,
    )
    expire: float = value(
        Duration(SHORTEST, 90 * 86400, "nobody waits three months for a reply"),
        "After this long an undelivered message is given up, with one visible notice.",
        default=86400.0,
    )


@frozen(kw_only=True)
class AccessConfig(Checked):
    """`[access]`: who may speak. Whom no pattern names is ignored."""

    allow: tuple[str, ...] = value(
        Patterns(),
        "Who may speak to the bot: a user's id on an account, everyone on an account, or everyone.",
        default=(),
    )
    owners: tuple[str, ...] = value(
        Patterns(), "Who may also command the bot, and is told of troubles; owners need not be in allow.", default=()
    )

    @property
    def rules(self) -> Access:
        """The same as something that decides."""
        return Access(allow=self.allow, owners=self.owners)


EDIT_INTERVAL = Duration(0, 60, "previews that are a minute apart are of no use")


@frozen(kw_only=True)
class PlatformConfig(Checked):
    """`[platforms.NAME]`, what all kinds share; NAME is the account."""

    kind: ClassVar[str]

    busy: Literal["interrupt", "queue", "steer"] | None = value(
        Choice(("interrupt", "queue", "steer")),
        "The same as chat.busy, for this account.",
        default=None,
        default_in_words="chat.busy",
    )
    edit_interval: float = value(EDIT_INTERVAL, "The least time between two previews in one chat.", default=1.0)

    @property
    def least_settle(self) -> float:
        """The shortest settle time that this table allows, in seconds."""
        return 0.0


@frozen(kw_only=True)
class ConsoleConfig(PlatformConfig):
    """A chat on this terminal."""

    kind: ClassVar[str] = "console"

    edit_interval: float = value(EDIT_INTERVAL, "The least time between two previews.", default=0.05)


@frozen(kw_only=True)
class TelegramConfig(PlatformConfig):
    """A Telegram bot."""

    kind: ClassVar[str] = "telegram"

    token: Secret = value(
        Hidden(
            required=True,
            shape=r"[^\s/?#%]+",
            shape_in_words=TOKEN_SHAPE,
        ),
        "The bot's token from @BotFather.",
        stand_in="0:stand-in",
    )
    base_url: str = value(Url(), "The root of the Bot API, for a server of your own.", default=TELEGRAM)
    poll_timeout: float = value(
        Duration(0, 50, "Telegram ends a long poll after 50 seconds"),
        "How long a poll waits for new messages.",
        default=30.0,
    )
    request_timeout: float = value(
        Duration(SHORTEST, 120, "the chat waits meanwhile"),
        "After this long a request is given up, with an unknown outcome.",
        default=10.0,
    )
    connect_timeout: float = value(
        Duration(SHORTEST, 60, "the chat waits meanwhile"), "How long a connection may take.", default=5.0
    )
    lateness: float | None = value(
        Duration(0, 600, "the chat waits this long after every uncertain message"),
        "How long after a request was given up the platform may still carry it out.",
        default=None,
        default_in_words="25 s, or what a shorter delivery.settle leaves behind request_timeout",
    )

    @property
    def least_settle(self) -> float:
        return self.request_timeout + (self.lateness or 0.0)

    def lateness_within(self, settle: float | None) -> float:
        """The lateness as written, else the platform's own, or less where the operator's settle time leaves less."""
        if self.lateness is not None:
            return self.lateness
        return LATENESS if settle is None else max(0.0, min(LATENESS, settle - self.request_timeout))


KINDS: Mapping[str, type[PlatformConfig]] = MappingProxyType({cls.kind: cls for cls in (TelegramConfig, ConsoleConfig)})
"""Every kind of platform that a file may name."""


@frozen(kw_only=True)
class TerminalConfig(Checked):
    """`[tools.terminal]`: the tool that runs shell commands for the model."""

    enabled: bool = value(
        Flag(),
        "Whether the model may run shell commands, with all the rights of the bot's own user.",
        default=False,
    )
    directory: Path = value(
        Directory(),
        "Where the commands run. A relative one starts at the directory of the file.",
        default=Factory(lambda: Path.home()),
        default_in_words="the home directory of the bot's user",
    )
    timeout: float = value(
        Duration(SHORTEST, 86400, "a command that runs for days is a service, not a tool"),
        "How long one command may run.",
        default=600.0,
    )


@frozen(kw_only=True)
class ToolsConfig(Checked):
    """`[tools]`: what the model may use besides words."""

    terminal: TerminalConfig = table(TerminalConfig, "The tool that runs shell commands; off unless enabled.")


@frozen(kw_only=True)
class ShutdownConfig(Checked):
    """`[shutdown]`: how the program ends."""

    drain: float = value(
        Duration(0, 3600, "whoever stops a service does not wait an hour"),
        "How long running answers may take to finish after SIGTERM; the rest is finished by the next start.",
        default=30.0,
    )


@frozen(kw_only=True)
class LogConfig(Checked):
    """`[log]`: what the program writes about itself, to standard error."""

    level: Literal["debug", "info", "warning", "error", "critical"] = value(
        Choice(("debug", "info", "warning", "error", "critical")),
        "The least important line that is written.",
        default="info",
    )
    format: Literal["console", "text", "json"] = value(
        Choice(("console", "text", "json")),
        "Lines for people (text is another word for console), or one JSON object a line.",
        default="console",
    )


def default_data_dir() -> Path:
    """The user's own directory for our data, by the custom of the operating system."""
    return user_data_path(APP, appauthor=False)


@frozen(kw_only=True)
class Config(Checked):
    """The whole configuration. Its defaults are a bot without a platform, whose model is the demonstration."""

    data_dir: Path = value(
        Directory(),
        "Where the database `state.db` and the control socket lie; a relative one starts at the file's directory.",
        default=Factory(default_data_dir),
        default_in_words="the user's data directory, by the custom of the operating system",
    )
    model: ModelConfig = table(
        ModelConfig,
        "The language model that answers. Without this table it is the built-in demonstration.",
        factory=lambda: ModelConfig(kind="demo"),
    )
    chat: ChatConfig = table(ChatConfig, "How the bot behaves towards a user.")
    delivery: DeliveryConfig = table(DeliveryConfig, "How replies are brought to the screen.")
    access: AccessConfig = table(AccessConfig, "Who may speak. Whom no pattern names is ignored.")
    platforms: Mapping[str, PlatformConfig] = named(
        KINDS,
        "The bot's accounts. The table's name is the account, in rows, logs and access patterns.",
        converter=lambda platforms: MappingProxyType(dict(platforms)),
    )
    tools: ToolsConfig = table(ToolsConfig, "What the model may use besides words.")
    shutdown: ShutdownConfig = table(ShutdownConfig, "How the program ends.")
    log: LogConfig = table(LogConfig, "What the program writes about itself, to standard error.")

    @classmethod
    def from_mapping(
        cls, mapping: Mapping[str, Any], base_dir: Path | str = ".", environ: Mapping[str, str] | None = None
    ) -> Config:
        """The configuration that a file with the same content would give; relative paths start at `base_dir`.

        `environ` (by default the process's environment) serves `*_env` keys and overrides, as for a file. Reads the
        files that `*_file` keys name. Raises ConfigError.
        """
        return read(cls, mapping, Path(base_dir), os.environ if environ is None else environ).value

    def contradictions(self) -> Iterator[Problem]:
        yield from self._unusable_names()
        yield from self._short_settling()
        yield from self._shared_tokens()
        yield from self._odd_tokens()

    def _unusable_names(self) -> Iterator[Problem]:
        for name in self.platforms:
            if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
                reason = "an account's name is 1 to 64 of the letters a-z, A-Z, 0-9, _, . and -"
                yield Problem(f"platforms.{name!r:.80}", reason)

    def _short_settling(self) -> Iterator[Problem]:
        settle = self.delivery.settle
        for name, platform in self.platforms.items():
            if settle is not None and settle < platform.least_settle:
                table = f"platforms.{name}"
                yield Problem(
                    "delivery.settle",
                    f"{seconds(settle)} is too short: write at least {seconds(platform.least_settle)}, because {table} "
                    "may carry out a request so long after its start (request_timeout + lateness)",
                    concerns=("delivery.settle", f"{table}.request_timeout", f"{table}.lateness"),
                )

    def _shared_tokens(self) -> Iterator[Problem]:
        owner: dict[Secret, str] = {}
        for name, platform in self.platforms.items():
            if isinstance(platform, TelegramConfig):
                first = owner.setdefault(platform.token, name)
                if first != name:
                    paths = (f"platforms.{name}.token", f"platforms.{first}.token")
                    reason = f"is the token of platforms.{first} too; two receivers would take each other's messages"
                    yield Problem(paths[0], reason, concerns=paths)

    def _odd_tokens(self) -> Iterator[Problem]:
        for name, platform in self.platforms.items():
            if not isinstance(platform, TelegramConfig) or platform.base_url != TELEGRAM:
                continue  # a server of one's own may hand out tokens of any shape
            if not re.fullmatch(r"\d+:.+", platform.token.reveal()):
                path = f"platforms.{name}"
                concerns = (f"{path}.token", f"{path}.base_url")
                yield Problem(f"{path}.token", f"does not look right: {TOKEN_SHAPE}", concerns=concerns)
