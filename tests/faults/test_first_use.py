"""Kernels that are not on disk yet: compiled by several processes, and kept where it is safe."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from numba import types

from bittern import first_use, jit, kept, precompile
from bittern.errors import BitternError
from bittern.files import make_private
from bittern.service.cli import main
from steady import PATIENCE, wait_until

KERNELS = """
from bittern.jit import i8, kernel

@kernel(i8, i8)
def more(number):
    return number + 1

@kernel(i8, i8)
def less(number):
    return number - 1
"""
#: Says what the kernels say, and how often they came from disk.
PROGRAM = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell starts with &
from bittern import first_use
first_use.FIRST_USE = {first_use!r}
os.sched_getaffinity = lambda process: {{0, 1}}
from parts.kernels import less, more
print(more(1), less(1), *(sum(k._dispatcher.stats.cache_hits.values()) for k in (more, less)))
"""
#: Only the processes that compile ahead get to load it.
SLOW = """
import os, pathlib, time
pathlib.Path(os.environ["STARTED"], str(os.getpid())).touch()
time.sleep(1e6)
"""
BOTH = ("parts.kernels:more", "parts.kernels:less")
ONCE = (
    "bittern: compiling kernels; each is compiled once and kept; `bittern warm-up` compiles all of "
    "them\n"
)


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """A folder with a package of two kernels, of which none is compiled."""
    package = tmp_path / "parts"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "kernels.py").write_text(KERNELS)
    (package / "slow.py").write_text(SLOW)
    return tmp_path


def start(parts: Path, items: tuple[str, ...] = BOTH, **variables: str) -> subprocess.Popen[str]:
    known = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(first_use=items)],
        env={**known, "PYTHONPATH": str(parts), **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(parts: Path, items: tuple[str, ...] = BOTH, **variables: str) -> tuple[str, str]:
    """What the program prints and says."""
    with start(parts, items, **variables) as process:
        shown, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    return shown, said


# ------------------------------------------------------------------ several processes


def test_what_a_first_use_needs_is_compiled_by_other_processes(parts: Path) -> None:
    assert run(parts) == ("2 0 1 1\n", ONCE)
    assert run(parts) == ("2 0 1 1\n", "")


def test_other_kernels_are_compiled_where_they_are_called(parts: Path) -> None:
    assert run(parts, ()) == ("2 0 0 0\n", ONCE)


def test_what_other_processes_cannot_compile_is_compiled_here(parts: Path) -> None:
    assert run(parts, ("parts.kernels:more", "parts.missing:x", *BOTH))[0].startswith("2 0 ")


def test_processes_that_start_together_all_work(parts: Path) -> None:
    together = [start(parts) for _ in range(3)]
    for process in together:
        with process:
            assert process.communicate(timeout=PATIENCE)[0] == "2 0 1 1\n"


def is_alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    except OSError:
        return False
    return state[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_process_stays_when_the_first_use_is_interrupted(
    parts: Path, number: signal.Signals
) -> None:
    started = parts / "started"
    started.mkdir()
    items = ("parts.slow:x", "parts.slow:y", *BOTH)
    with start(parts, items, STARTED=str(started)) as process:
        wait_until(lambda: bool(list(started.iterdir())), process.poll)
        process.send_signal(number)
        assert process.wait(PATIENCE) == -number
    wait_until(lambda: not any(is_alive(int(path.name)) for path in started.iterdir()))
    assert run(parts)[0] == "2 0 1 1\n"  # nor does a lock


def test_first_use_is_what_the_first_example_of_the_readme_needs() -> None:
    program = (
        "import sys, bittern\n"
        "from bittern.jit import Kernel\n"
        "index = bittern.Index.build("
        "{'s1': \"model = 'iphone5s' AND color = 'silver' AND price <= 580\"})\n"
        "event = {'model': 'iphone5s', 'color': 'silver', 'price': 550}\n"
        "matcher = bittern.Matcher(index)\n"
        "assert matcher.match([event]).to_pylist() == [['s1']]\n"
        "assert matcher.match((event,)).to_pylist() == [['s1']]\n"  # always as a batch
        "for name, module in list(sys.modules.items()):\n"
        "    for value in vars(module).values() if name.startswith('bittern') else ():\n"
        "        if isinstance(value, Kernel) and value._dispatcher is not None:\n"
        "            print(f'{value.__wrapped__.__module__}:{value.__name__}')\n"
    )
    command = [sys.executable, "-c", program]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    # A list loads what matches one event where that is compiled already, and does not wait for it.
    single = "bittern.engine.one_event.kernel:match_one"
    assert set(shown.stdout.split()) - {single} == set(first_use.FIRST_USE)


def test_what_cannot_be_compiled_ahead_is_told() -> None:
    with pytest.raises(BitternError, match=r"cannot compile: bittern\.nowhere: Module"):
        precompile._compile(["bittern.errors", "bittern.nowhere"], 2, None)


# ------------------------------------------------------------------ places


@pytest.fixture
def homeless(parts: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where neither the package nor the home folder can be written: the temporary folder.

    Not by permissions, which root need not mind.
    """
    (parts / "parts" / "__pycache__").touch()
    monkeypatch.setenv("HOME", "/dev/null")
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null")
    temporary = parts / "temporary"
    temporary.mkdir(mode=0o700)
    monkeypatch.setenv("TMPDIR", str(temporary))
    return temporary / f"bittern-kernels-{os.geteuid()}"


def test_kernels_are_kept_below_the_temporary_folder(parts: Path, homeless: Path) -> None:
    shown, said = run(parts)
    assert shown == "2 0 1 1\n"
    assert f"kernels; they are kept in {homeless} while that is there" in said
    assert "set NUMBA_CACHE_DIR to a folder that stays, or run `bittern warm-up`" in said
    assert stat.S_IMODE(homeless.lstat().st_mode) == 0o700
    assert run(parts) == ("2 0 1 1\n", "")


def test_a_folder_for_caches_that_is_named_is_used(parts: Path, homeless: Path) -> None:
    named = parts / "named"
    assert run(parts, NUMBA_CACHE_DIR=str(named)) == ("2 0 1 1\n", ONCE)
    assert list(named.glob("parts_*/kernels.more-*.nbc"))
    assert not homeless.exists()


def test_a_folder_that_a_file_in_the_working_directory_names_is_not_used(
    parts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever wrote the file could have compiled anything."""
    pytest.importorskip("yaml", reason="Numba reads the file with it")
    (parts / ".numba_config.yaml").write_text(f"cache_dir: {parts / 'named'}\n")
    monkeypatch.chdir(parts)
    assert run(parts) == ("2 0 1 1\n", ONCE)
    assert not (parts / "named").exists()


@pytest.mark.parametrize("cache", [".", ".cache", ".cache/numba"])
def test_a_home_that_others_have_a_hand_in_is_not_used(
    parts: Path, homeless: Path, monkeypatch: pytest.MonkeyPatch, cache: str
) -> None:
    home = parts / "home"
    (home / ".cache" / "numba").mkdir(parents=True)
    (home / cache).chmod(0o777)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME")
    shown, said = run(parts, ())  # where they are called: other processes ask for the same place
    assert shown == "2 0 0 0\n"
    assert f"kernels; they are kept in {homeless} while that is there" in said
    if cache == ".":  # once they have left, it is: all three are as they should be then
        (home / cache).chmod(0o700)
        assert run(parts, ()) == ("2 0 0 0\n", ONCE)
        assert list((home / ".cache" / "numba").rglob("kernels.more-*.nbc"))


@pytest.mark.parametrize("what", ["a link", "open to others", "a file", "below an open folder"])
def test_a_folder_that_others_have_a_hand_in_is_not_used(
    parts: Path, homeless: Path, what: str
) -> None:
    elsewhere = parts / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    if what == "a link":
        homeless.symlink_to(elsewhere)
    elif what == "open to others":
        homeless.mkdir()
        homeless.chmod(0o777)
    elif what == "a file":
        homeless.touch()
    else:
        homeless.mkdir(mode=0o700)
        homeless.parent.chmod(0o777)
    shown, said = run(parts)
    assert shown == "2 0 0 0\n"
    assert "compiling kernels; every process does so again" in said
    assert f"nor is {homeless} this user's alone; set NUMBA_CACHE_DIR" in said
    assert not list(elsewhere.iterdir())
    assert not homeless.is_dir() or not list(homeless.iterdir())


def test_a_folder_of_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path.resolve() / "kernels"
    assert make_private(folder)
    assert make_private(folder)
    found = Path.lstat(folder)
    foreign = os.stat_result((*found[:4], found.st_uid + 1, *found[5:]))
    theirs = folder
    lstat = Path.lstat
    monkeypatch.setattr(Path, "lstat", lambda path: foreign if path == theirs else lstat(path))
    assert not make_private(folder)
    theirs = folder.parent  # they can put another in its place
    assert not make_private(folder)


def test_a_sticky_folder_keeps_what_is_in_it(tmp_path: Path) -> None:
    shared = tmp_path.resolve() / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    assert make_private(shared / "kernels")
    shared.chmod(0o777)
    assert not make_private(shared / "kernels")
    assert not make_private(tmp_path / "missing" / "kernels")


# ------------------------------------------------------------------ the command


@pytest.mark.parametrize(
    ("options", "name"), [([], "compile_all"), (["--defaults"], "compile_first_use")]
)
def test_warm_up(
    options: list[str],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = []

    def compile_them(processes, progress):
        asked.append(processes)
        progress("compiling", 7, 7)
        return 1234

    monkeypatch.setattr(precompile, name, compile_them)
    assert main(["warm-up", *options, "--processes", "3"]) == 0
    assert asked == [3]
    said = capsys.readouterr()
    assert said.err == "compiling: 7 of 7\nbittern: 1,234 kernels compiled\n"
    assert not said.out


def test_warm_up_says_what_it_cannot_compile(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(precompile, "modules", lambda: ["bittern.nowhere"])
    assert main(["warm-up", "--quiet"]) == 1
    assert "bittern: cannot compile: bittern.nowhere: " in capsys.readouterr().err


def test_warm_up_is_refused_where_nothing_can_be_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kept, "kept_in", lambda: None)
    assert main(["warm-up"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("bittern: compiled kernels cannot be kept: ")
    assert "set NUMBA_CACHE_DIR to a folder of your own" in said


def test_warm_up_says_where_kernels_may_not_stay(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kept, "kept_in", lambda: first_use.temporary_place() / "engine")
    monkeypatch.setattr(precompile, "compile_all", lambda *_: 1)
    assert main(["warm-up", "--quiet"]) == 0
    said = capsys.readouterr().err
    assert f"kept in {first_use.temporary_place()}, which may not stay" in said


# ------------------------------------------------------------------ functions inside kernels


@jit.inline
def scaled(number, factor):
    return number * factor


def test_a_function_is_compiled_once_whether_or_not_its_arguments_are_constants() -> None:
    for factor in (types.literal(3), jit.i8, types.literal(5)):
        scaled.get_call_template((jit.i8, factor), {})
    assert scaled.signatures == [(jit.i8, jit.i8)]


def test_a_function_of_kernels_can_be_called() -> None:
    assert scaled(2, 3) == 6
    assert scaled(2.5, 3) == 7.5
