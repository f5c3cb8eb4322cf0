"""The file of a pipeline: what it may say, and how it is told what is wrong with it."""

from __future__ import annotations

import dataclasses
import inspect
import re
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bittern.errors import OptionError
from bittern.service import pipeline_file
from bittern.service.pipeline_file import (
    CHANGES,
    SINKS,
    SOURCES,
    EdgeStep,
    HistorySection,
    ThrottleStep,
)
from bittern.service.settings import Settings

PLAIN = """
[catalog]
url = "shop.db"
[source]
kind = "files"
path = "events"
format = "json"
[sink]
kind = "files"
path = "matches"
[run]
checkpoint = "checkpoint"
"""


SECTIONS = "catalog, source, changes, matching, history, after, sink, rejects, run, metrics"


@pytest.fixture
def read(tmp_path: Path) -> Any:
    def reads(text: str | bytes, **environment: str) -> Any:
        file = tmp_path / "shop.toml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return pipeline_file.read(file, environment)

    return reads


@pytest.fixture
def told(read: Any, tmp_path: Path) -> Any:
    """What is said about a file, one line for each thing."""

    def tells(text: str | bytes, **environment: str) -> list[str]:
        with pytest.raises(OptionError) as caught:
            read(text, **environment)
        lines = str(caught.value).split("\n")
        assert lines[0].startswith(f"{tmp_path / 'shop.toml'}")
        return [line.strip() for line in lines[1:]] or lines

    return tells


def test_the_least_that_a_file_says(read: Any, tmp_path: Path) -> None:
    file = read(PLAIN)
    assert file.name == "shop"
    assert file.catalog.url == f"{tmp_path}/shop.db"
    assert file.source.path == f"{tmp_path}/events"
    assert file.sink.path == f"{tmp_path}/matches"
    assert file.run.checkpoint == f"{tmp_path}/checkpoint"
    assert (file.run.trigger, file.run.master, file.run.conf) == ("1 second", None, {})
    assert (file.rejects, file.history, file.edge, file.throttle) == (None, None, None, None)
    assert (file.matching.event_id, file.matching.limit) == ((), None)
    assert dataclasses.astuple(file.metrics) == (None, None, None, None)


def test_a_history_may_say_nothing_more(read: Any, tmp_path: Path) -> None:
    assert dataclasses.astuple(read(f"{PLAIN}[history]\n").history) == (None, None, None)
    told = 'path = "documents"\nkeep = 10\norder_by = "at"\n'
    file = read(f"{PLAIN}[history]\n{told}")
    assert dataclasses.astuple(file.history) == (f"{tmp_path}/documents", 10, ("at",))


@pytest.mark.parametrize(
    ("told", "names"), [('"*"', ("*",)), ('["price", "title"]', ("price", "title"))]
)
def test_a_payload_is_one_name_or_several(read: Any, told: str, names: tuple[str, ...]) -> None:
    assert read(f"{PLAIN}[matching]\npayload = {told}\n").matching.payload == names


def test_what_is_wrong_with_a_history(told: Any) -> None:
    lines = 'keep = 0\norder_by = 7\npaths = "at"\n'
    assert told(f"{PLAIN}[history]\n{lines}") == [
        "history.paths is not a key here: did you mean path?",
        "history.keep must be a whole number from 1 to 1,000,000,000, not 0",
        "history.order_by must be a string or a list of strings, not 7",
    ]
    assert told("history = true\n" + PLAIN) == ["history must be a table of keys, not true"]


def test_the_example_is_right() -> None:
    """Every key of every section stands in it, be it behind a comment sign."""
    example = Path(__file__).parents[2] / "examples" / "pipeline.toml"
    environment = {"CATALOG_PASSWORD": "x", "WEBHOOK_SECRET": "y" * 32}
    file = pipeline_file.read(example, environment)
    text = example.read_text()
    for section in (file.catalog, file.matching, file.run, file.metrics):
        assert_shown(section, text)
    kinds = [*SOURCES.values(), *CHANGES.values(), *SINKS.values()]
    for kind in [*kinds, EdgeStep, ThrottleStep, HistorySection]:
        assert_shown(kind, text)


def assert_shown(section: Any, text: str) -> None:
    for field in dataclasses.fields(section):
        written = rf"^(?:# ?)?(?:{field.name} = |\[\w+\.{field.name}\])|[{{ ]{field.name} = "
        assert re.search(written, text, re.MULTILINE), f"{section}: {field.name}"


def test_the_example_is_right_whatever_is_chosen(tmp_path: Path) -> None:
    """Each alternative that is commented out is one too: a block behind ``#`` signs."""
    example = (Path(__file__).parents[2] / "examples" / "pipeline.toml").read_text()
    block = re.compile(r"^# (\[(\w+)(?:\.\w+)?\]\n(?:#.*\n)*)", re.MULTILINE)
    blocks = block.findall(example)
    assert {name for _, name in blocks} >= {"source", "changes", "sink", "after"}
    for block, name in blocks:
        lines = [line.removeprefix("# ") for line in block.splitlines()]
        kept = [line for line in lines if re.match(r"\[|[\w.\"-]+ = ", line)]
        others = PLAIN if name not in {"source", "sink"} else without(PLAIN, name)
        file = tmp_path / "other.toml"
        file.write_text(f"{others}\n" + "\n".join(kept))
        pipeline_file.read(file, {"WEBHOOK_SECRET": "y" * 32, "KAFKA_PASSWORD": "z"})


def without(text: str, section: str) -> str:
    return re.sub(rf"\[{section}\]\n(?:[^\[].*\n)*", "", text)


def test_paths_start_at_the_files_folder_and_urls_do_not(read: Any, tmp_path: Path) -> None:
    text = PLAIN.replace("shop.db", "postgresql://u@h/d").replace('"matches"', '"/data/m"')
    text = text.replace('"checkpoint"', '"../state/checkpoint"').replace('"events"', '"~/events"')
    file = read(text)
    assert file.catalog.url == "postgresql://u@h/d"
    assert file.sink.path == "/data/m"
    assert file.run.checkpoint == f"{tmp_path}/../state/checkpoint"
    assert file.source.path == str(Path.home() / "events")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("sqlite:///shop.db", "sqlite:///{folder}/shop.db"),
        ("sqlite:///../shop.db", "sqlite:///{folder}/../shop.db"),
        ("sqlite:////data/shop.db", "sqlite:////data/shop.db"),
        ("sqlite:///", "sqlite:///"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
    ],
)
def test_a_path_in_a_url_starts_there_too(
    read: Any, tmp_path: Path, written: str, meant: str
) -> None:
    assert read(PLAIN.replace("shop.db", written)).catalog.url == meant.format(folder=tmp_path)


def test_a_relative_file_name_gives_absolute_paths(
    read: Any, tmp_path: Path, monkeypatch: Any
) -> None:
    read(PLAIN)
    monkeypatch.chdir(tmp_path)
    assert pipeline_file.read("shop.toml", {}).catalog.url == f"{tmp_path}/shop.db"


def test_settings_of_spark_may_be_written_with_dots(read: Any) -> None:
    conf = '[run.conf]\nspark.sql.shuffle.partitions = 2\n"spark.ui.enabled" = true\na.b = "x"\n'
    assert read(PLAIN + conf).run.conf == {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "true",
        "a.b": "x",
    }


def test_the_path_of_a_format_is_one_too(read: Any, tmp_path: Path) -> None:
    sink = '[sink]\nkind = "format"\nname = "orc"\noptions = {Path = "m", table = "t"}\n'
    file = read(without(PLAIN, "sink") + sink)
    assert file.sink.options == {"Path": f"{tmp_path}/m", "table": "t"}


# Everything that is wrong is told at once


def test_an_empty_file_is_told_all_that_it_lacks(told: Any) -> None:
    assert told("") == [
        "catalog.url is missing: a path, sqlite:///path or postgresql://user@host/database",
        "run.checkpoint is missing: a folder that the pipeline keeps its progress in",
        "[source] is missing: its kind must be one of files, kafka, generator",
        "[sink] is missing: its kind must be one of files, kafka, format, webhook",
    ]


def test_many_mistakes_are_told_together(told: Any) -> None:
    said = told("""
metricks = 1
[catalog]
uri = "shop.db"
[source]
kind = "kafak"
[sink]
kind = "files"
path = 7
[matching]
limit = 0
json = [1]
[after]
edge = "product"
[run]
checkpoint = ""
triger = "1 second"
[metrics]
prometheus_port = "9400"
""")
    assert said == [
        "[metricks] is not a key here; the keys are " + SECTIONS,
        "catalog.uri is not a key here: did you mean url?",
        "catalog.url is missing: a path, sqlite:///path or postgresql://user@host/database",
        "run.triger is not a key here: did you mean trigger?",
        "run.checkpoint is empty",
        "matching.json must be a string or a list of strings, not a list",
        "matching.limit must be a whole number from 1 to 1,000,000,000, not 0",
        "metrics.prometheus_port must be a whole number from 1 to 65,535, not '9400'",
        "source.kind must be one of files, kafka, generator, not 'kafak': did you mean kafka?",
        "sink.path must be a string, not 7",
        "after.edge must be a table of keys, not 'product'",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            'trigger = "now"',
            "run.trigger must be '1 second', '500 milliseconds', ... or 'available-now'",
        ),
        ('trigger = "1 second; DROP"', "run.trigger must be '1 second'"),
        ("trigger = 5", "run.trigger must be '1 second'"),
        ("conf = 5", "run.conf must be a table of keys, not 5"),
        ('conf = {a = ["b"]}', "run.conf has a, which must be a string, not a list"),
        ("conf = {a = 2020-01-01}", "run.conf has a, which must be a string, not 2020-01-01"),
        ("name = true", "run.name must be a string, not true"),
        ('name = "a\\u0000b"', "run.name holds the character U+0000"),
        ('name = "  "', "run.name is empty"),
        ('"check point" = "x"', 'run."check point" is not a key here; the keys are'),
        ('"\\u001b[31m" = "x"', r'run."\u001b[31m" is not a key here'),
        (f"{'x' * 500} = 1", f"run.{'x' * 60}... is not a key here"),
        (f'trigger = "{"x" * 500}"', "xxx..."),
    ],
)
def test_values_that_are_not_what_they_should_be(told: Any, change: str, said: str) -> None:
    lines = told(f"{PLAIN}{change}\n")
    assert len(lines) == 1
    assert said in lines[0]


@pytest.mark.parametrize("value", ["nan", "-1", "1.5", "true", "1e300", "99999999999999999999"])
def test_ports_that_are_none(told: Any, value: str) -> None:
    (line,) = told(f"{PLAIN}[metrics]\nprometheus_port = {value}\n")
    assert line.startswith("metrics.prometheus_port must be a whole number from 1 to 65,535, not")


def test_sections_that_are_no_tables(told: Any) -> None:
    said = told('catalog = 1\nsource = "files"\nsink = [1]\nrun = []\nafter = 2\nmetrics = 1.5\n')
    assert said == [
        "catalog must be a table of keys, not 1",
        "run must be a table of keys, not a list",
        "metrics must be a table of keys, not 1.5",
        "source must be a table of keys, not 'files'",
        "sink must be a table of keys, not a list",
        "after must be a table of keys: edge = {...}, throttle = {...}",
    ]
    (line,) = told(PLAIN.replace("[sink]", "[[sink]]"))
    assert line == "sink must be a table of keys, not a list"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[catalog", "is not TOML: "),
        (PLAIN + "[run]\n", "is not TOML: "),  # twice
        (b"\xff\xfe", "is not UTF-8: "),
        ("a = " + "[" * 5_000, "is not TOML: "),
        ("a = " + "9" * 5_000, "is not TOML: "),
        ("#" * (1 << 20) + "\n", "is larger than"),
        ("\0", "is not TOML: "),
    ],
)
def test_files_that_are_none(told: Any, text: Any, said: str) -> None:
    (line,) = told(text)
    assert said in line


def test_files_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="No such file"):
        pipeline_file.read(tmp_path / "nope.toml", {})
    with pytest.raises(OptionError, match="Is a directory"):
        pipeline_file.read(tmp_path, {})


WORDS = ["kind", "path", "keys", "topics", "servers", "options", "columns", "files", "kafka"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(WORDS) | st.text(), inner, max_size=4)
    ),
)


@given(VALUES)
def test_any_table_is_a_source_or_an_option_error(given: Any) -> None:
    settings = Settings(Path("shop.toml"), {})
    source = settings.choice(SOURCES, given, "source")
    if source is None:
        with pytest.raises(OptionError, match=r"shop\.toml: .* wrong with it"):
            settings.finish()
    else:
        settings.finish()
        assert isinstance(source, SOURCES[given["kind"]])


@pytest.mark.parametrize(
    "kind",
    [*SOURCES.values(), *CHANGES.values(), *SINKS.values(), EdgeStep, ThrottleStep],
)
def test_keys_are_the_arguments_of_what_they_make(kind: Any) -> None:
    pytest.importorskip("pyspark")
    from bittern.spark import changes, streaming

    home = changes if kind in CHANGES.values() else streaming
    made = inspect.signature(attrgetter(kind.makes)(home)).parameters
    arguments = {name: given for name, given in made.items() if name != "spark"}
    keys = {field.name: field for field in dataclasses.fields(kind)}
    assert keys.keys() == arguments.keys()
    for name, argument in arguments.items():
        if argument.default is argument.empty and name != "order":  # None must be said there
            assert keys[name].default is keys[name].default_factory is dataclasses.MISSING


# The environment


def test_variables_stand_for_their_values(read: Any) -> None:
    text = PLAIN.replace("shop.db", "postgresql://u:${PASSWORD}@${HOST}/d$${x}")
    file = read(text, PASSWORD="p${HOST}w", HOST="db")
    assert file.catalog.url == "postgresql://u:p${HOST}w@db/d${x}"  # a value is not read again


def test_variables_that_are_not_set_are_named_all_of_them(told: Any) -> None:
    text = PLAIN.replace("shop.db", "postgresql://u:${PASSWORD}@h/d")
    conf = '[run.conf]\n"spark.secret" = "${SECRET}"\n'
    assert told(text + conf, OTHER="x") == [
        "catalog.url needs the environment variable PASSWORD, which is not set",
        "run.conf needs the environment variable SECRET, which is not set",
    ]


def test_a_variable_that_is_empty_is_told_by_its_name(told: Any) -> None:
    (line,) = told(PLAIN.replace("shop.db", "${URL}"), URL="")
    assert line == "catalog.url is empty: ${URL} is set to nothing"


@pytest.mark.parametrize("text", ["${}", "${a-b}", "${open", "${ X }", "${1}"])
def test_what_looks_like_a_variable_and_is_none(told: Any, text: str) -> None:
    (line,) = told(PLAIN.replace("shop.db", text), X="x")
    assert "which is not a variable: write ${NAME}, or $${" in line


def test_a_dollar_alone_is_a_dollar(read: Any, tmp_path: Path) -> None:
    assert read(PLAIN.replace("shop.db", "a$b$")).catalog.url == f"{tmp_path}/a$b$"


def test_no_message_shows_a_secret(told: Any) -> None:
    text = f'{PLAIN}trigger = "${{SECRET}}"\nmaster = "${{SECRET}}${{MISSING}}"\n'
    lines = told(text + '[after]\nthrottle = {most = 1, per = "1 hour", by = "${SECRET}"}\n',
                 SECRET="hunter2")  # fmt: skip
    assert len(lines) == 3
    assert not any("hunter2" in line for line in lines)
