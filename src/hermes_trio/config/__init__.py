"""The configuration: one strict TOML file, read into frozen classes, with every mistake reported at once.

`schema` is the only description of the keys; `reading` turns a mapping into its classes, `loading` does that for a
file, `reference` describes it. The one rule: a value is checked where its class is constructed, so a file, the
environment and a program meet the same limits.
"""

from hermes_trio.config.errors import EX_CONFIG, ConfigError, MissingConfig, Problem, report
from hermes_trio.config.loading import LoadedConfig, default_config_path, load_config, parse_config
from hermes_trio.config.schema import (
    KINDS,
    AccessConfig,
    ChatConfig,
    Config,
    ConsoleConfig,
    DeliveryConfig,
    LogConfig,
    ModelConfig,
    PlatformConfig,
    ShutdownConfig,
    TelegramConfig,
    TerminalConfig,
    ToolsConfig,
)
from hermes_trio.config.secret import Secret

__all__ = [
    "EX_CONFIG",
    "KINDS",
    "AccessConfig",
    "ChatConfig",
    "Config",
    "ConfigError",
    "ConsoleConfig",
    "DeliveryConfig",
    "LoadedConfig",
    "LogConfig",
    "MissingConfig",
    "ModelConfig",
    "PlatformConfig",
    "Problem",
    "Secret",
    "ShutdownConfig",
    "TelegramConfig",
    "TerminalConfig",
    "ToolsConfig",
    "default_config_path",
    "load_config",
    "parse_config",
    "report",
]
