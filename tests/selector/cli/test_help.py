"""Help names every command once, in columns, and each command says what it does with examples."""

import re

import pytest

from selector.cli import main

COMMANDS = ("rank", "probe", "plan", "compare", "backtest", "variance", "curriculum", "grade", "read")


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_all_commands_are_listed_once_in_one_column(capsys):
    listed = re.findall(r"^  (\w+)( +)\S", help_of(capsys), re.MULTILINE)

    assert tuple(name for name, _ in listed) == COMMANDS
    assert len({len(name) + len(space) for name, space in listed}) == 1


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_shows_how_it_is_called(capsys, command):
    shown = help_of(capsys, command)

    assert shown.startswith(f"usage: assay {command} ")
    assert re.search(rf"^  assay {command} \S", shown, re.MULTILINE)


def test_a_command_that_is_missing_is_told(capsys):
    with pytest.raises(SystemExit) as stopped:
        main([])

    assert stopped.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
