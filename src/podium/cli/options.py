"""Command-line options for the parameters that `podium.core.hyperparameters` declares."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from podium.cli.app import FlagsWithoutType
from podium.core.hyperparameters import translated_name
from podium.core.parameters import Parameter, parameters

SHORT = {"measure": "-m", "verbose": "-v"}
PREFIX = "parameter_"  # of the arguments of a command: avoids a clash with `normalize`, an option of reading data


def _option(parameter: Parameter[Any], default: str | bool, flags: dict[str, str | None]) -> Any:
    """Return the option of a parameter; `flags` gives the flags of other parameters that its help mentions."""
    flag = parameter.flag
    assert flag is not None, parameter.name
    names = [f"{flag}/--no-{flag[2:]}" if parameter.kind is bool else flag]
    if parameter.kind is list:
        names.append(flag[:-1])  # --metric as well as --metrics
    if parameter.name in SHORT:
        names.append(SHORT[parameter.name])
    summary = re.sub(r"`(\w+)`", lambda name: flags.get(name[1]) or name[1], parameter.summary)
    text = summary.replace("`", "").replace('"', "")
    if parameter.choices:
        text += f" One of {', '.join(parameter.choices)}."
    if parameter.kind is list:
        text += " Repeatable."
    return typer.Option(*names, help=text, show_default=default, rich_help_panel="Parameters")


def as_command(
    wrapped: Callable[..., None], command: Callable[..., None], argument: str, options: list[inspect.Parameter]
) -> Callable[..., None]:
    """Give `wrapped` the signature of `command`, with `options` in place of `argument`, and return it."""
    signature = inspect.signature(command, eval_str=True)
    arguments = [p for p in signature.parameters.values() if p.name != argument] + options
    keyword = inspect.Parameter.KEYWORD_ONLY
    wrapped.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[p.replace(kind=keyword) for p in arguments]
    )
    wrapped.__annotations__ = {p.name: p.annotation for p in arguments}
    wrapped.__name__, wrapped.__doc__ = command.__name__, command.__doc__
    return wrapped


def with_parameters(cls: type, without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of a class's parameters to a command; its argument `settings` holds those that the user sets."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def wrapped(**values: Any) -> None:
            command(settings=_pop_settings(cls, values), **values)

        options = [p for p in _options_of(cls) if p.name.removeprefix(PREFIX) not in without]
        return as_command(wrapped, command, "settings", options)

    return decorate


def _options_of(cls: type) -> list[inspect.Parameter]:
    """Return a keyword argument for each parameter of a class that has a flag.

    The default is None, which tells a value that the user sets from the parameter's default.
    """
    options = []
    flags = {name: parameter.flag for name, parameter in parameters(cls).items()}
    for name, parameter in parameters(cls).items():
        if parameter.flag is None:
            continue
        kind: Any = list[str] if parameter.kind is list else str if parameter.read else parameter.kind
        default = False if parameter.default is None or parameter.default == () else _shown(parameter.default)
        annotation = Annotated[kind | None, _option(parameter, default, flags)]
        keyword = inspect.Parameter.KEYWORD_ONLY
        options.append(inspect.Parameter(PREFIX + name, keyword, default=None, annotation=annotation))
    return options


def _shown(default: Any) -> str:
    return ("on" if default else "off") if isinstance(default, bool) else str(default)


def _pop_settings(cls: type, values: dict[str, Any]) -> dict[str, Any]:
    """Pop the parameters that the user set from a command's arguments, and return them."""
    settings = {}
    for name, parameter in parameters(cls).items():
        value = values.pop(PREFIX + name, None)
        if value is not None and value != []:
            settings[name] = parameter.read(value) if parameter.read else value
    return settings


class Command(FlagsWithoutType, TyperCommand):
    """A command that suggests the right option for a misspelt one, and Podium's name for another tool's option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; if an option belongs to another tool, the error suggests Podium's name for it."""
        try:
            return super().parse_args(ctx, args)
        except Exception as error:
            if isinstance(unknown := getattr(error, "option_name", None), str) and hasattr(error, "possibilities"):
                flag = "--" + translated_name(unknown.lstrip("-").replace("-", "_")).replace("_", "-")
                if any(flag in parameter.opts for parameter in self.params):
                    error.possibilities = [flag]
                self.add_hint(error, flag)
            raise

    def add_hint(self, error: Any, flag: str) -> None:
        """Add a hint to the error for an option that does not exist."""
