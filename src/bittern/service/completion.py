"""``bittern completion``: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from bittern.errors import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def add_parser(
    commands: Any, new: Callable[..., argparse.ArgumentParser], whole: argparse.ArgumentParser
) -> None:
    """Add the command; ``new`` makes a command of a name and its help, ``whole`` is all of them."""
    command = new(
        commands,
        "completion",
        "print what a shell needs to complete commands and options",
        """It needs shtab: pip install 'bittern[completion]'.

example:
  bittern completion bash > ~/.local/share/bash-completion/completions/bittern
""",
    )
    command.add_argument("shell", metavar="SHELL", choices=("bash", "zsh", "tcsh"))
    command.set_defaults(parser=whole)


def run(options: argparse.Namespace) -> int:
    """Print the script for a shell: words that are free are completed as names of files."""
    try:
        import shtab  # noqa: PLC0415  an extra
    except ModuleNotFoundError:
        raise OptionError("shtab is needed: pip install 'bittern[completion]'") from None
    for action in _actions(options.parser):
        if action.nargs != 0 and action.choices is None and action.type is None:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(options.parser, options.shell))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options and arguments of a command, and of those below it."""
    for action in parser._actions:  # noqa: SLF001  shtab reads them as well
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for each in action.choices.values():
                yield from _actions(each)
        else:
            yield action
