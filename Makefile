# Every target sets up first: a virtual environment with pinned versions, made again only when
# pyproject.toml or constraints.txt change. Nothing outside this folder is touched, except that
# root on a machine with apt gets what is missing there: Java 17, and for the tests Maven,
# PostgreSQL and Chromium.

VENV := .venv
RUN := $(VENV)/bin/python
KAFKA_JARS := scripts/kafka_jars.sh .kafka $(RUN)
JUDGE_JARS := scripts/judge_jars.sh .judges
S3 := scripts/s3.sh .s3 $(RUN)
# Whole runs write benchmarks/results/<date>.json; `make bench BENCH_ARGS=--small` only tries.
BENCH_ARGS := --peers
SPARK_BENCH_ARGS :=
STREAMING_BENCH_ARGS :=
HISTORY_BENCH_ARGS :=
PB_TREE_BENCH_ARGS :=
RIVALS_ARGS :=
SERVE_BENCH_ARGS :=
TEST_ARGS :=
VERSIONS :=
FAST := tests/core tests/spark -m "smoke or not spark"
PLAIN := core/test_cei core/test_dlist core/test_json_text core/test_patterns core/test_strings \
	papers/test_bit_vectors papers/test_hybrid_index papers/test_interval_index papers/test_is_list
# Tests start processes by the hundred, and each would compile all sources again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo console ready test test-all test-plain test-spark-versions check
.PHONY: kafka-jars judge-jars s3 clean dist docs
.PHONY: bench bench-papers bench-seed-003 bench-spark bench-streaming bench-history bench-pb-tree
.PHONY: bench-serve conformance rivals

help:
	@echo "make demo    a shop's stream on Spark: price changes, 200,000 wishes that change, alerts"
	@echo "make console the console with a shop's wishes and a stream of price changes; Ctrl-C ends it"
	@echo "make test    the quick tests, a few minutes: the core, and of Spark one module per room"
	@echo "make test-all"
	@echo "             all tests: Spark, faults, the papers' structures and the benchmarks as well"
	@echo "make ready   what tests need before they start: compiled kernels, servers, jars"
	@echo "make test-plain"
	@echo "             some kernels as plain Python, not compiled"
	@echo "make test-spark-versions"
	@echo "             a little of everything on Spark 3.5 to 4.3, each with the lowest versions of"
	@echo "             all others; VERSIONS='3.5 4.1' chooses; half an hour and 5 GB the first time"
	@echo "make check   lint, format and types"
	@echo "make docs    the site, in build/site: open build/site/index.html"
	@echo "make dist    the packages, built twice and used in empty environments, in dist"
	@echo "make kafka-jars"
	@echo "             Spark's Kafka connector and a broker, which the tests get as well"
	@echo "make judge-jars"
	@echo "             other systems' matchers, which the tests get as well"
	@echo "make s3      Spark's connector for S3 and a server of its protocol, which tests get too"
	@echo "make bench   the benchmarks, beside DuckDB and Polars: JSON and tables (BENCH_ARGS)"
	@echo "make bench-papers"
	@echo "             the experiments of the papers again, beside other libraries: page and plots"
	@echo "make bench-seed-003"
	@echo "             seed 003's experiments: every strategy, half an hour, up to 20 GB"
	@echo "make bench-spark"
	@echo "             on Spark: beside what users write today, scaling, memory (SPARK_BENCH_ARGS)"
	@echo "make bench-streaming"
	@echo "             a pipeline under load: events/s, latency, freshness, every match verified"
	@echo "make bench-history"
	@echo "             join predicates over a million documents, beside nested loops and DuckDB"
	@echo "make bench-pb-tree"
	@echo "             the predicate index on disk, beside SQLite, LMDB and structures in memory"
	@echo "make bench-serve"
	@echo "             the service over HTTP: requests/s, batches, streams, freshness; Lucene's Monitor"
	@echo "make rivals  beside event-ruler, Quamina, RE2's set and Hyperscan: the page (RIVALS_ARGS)"
	@echo "make conformance"
	@echo "             how much of Spark's own SQL tests is accepted and answered alike: the page"
	@echo "make clean   remove everything that these made"

demo: $(VENV)/.has-spark
	@java_home=$$(scripts/java.sh) && JAVA_HOME=$$java_home $(RUN) examples/demo.py

console: $(VENV)/.has-serve
	@$(RUN) examples/console.py

test: TESTS = $(FAST)
test-all: TESTS =

# What only some tests need first: those skip, and say so, where it cannot be had. Then the kernels,
# each compiled by one process: the tests' own processes would compile the same ones. Meanwhile the
# archive of classes that JVMs of tests start with, which is made once.
ready: $(VENV)/.has-dev
	@scripts/postgresql.sh || echo "bittern: TESTS WITH POSTGRESQL ARE SKIPPED, see above" >&2
	@$(KAFKA_JARS) || echo "bittern: TESTS WITH KAFKA ARE SKIPPED, see above" >&2
	@$(JUDGE_JARS) || echo "bittern: TESTS BESIDE OTHER SYSTEMS' MATCHERS ARE SKIPPED, see above" >&2
	@$(S3) || echo "bittern: TESTS WITH S3 ARE SKIPPED, see above" >&2
	@scripts/chromium.sh || echo "bittern: TESTS WITH A BROWSER ARE SKIPPED, see above" >&2
	@java_home=$$(scripts/java.sh) && export JAVA_HOME=$$java_home && \
		{ $(RUN) tests/class_archive.py 2>/dev/null || \
			echo "bittern: NO ARCHIVE OF CLASSES, Spark starts slowly" >&2 & } && \
		$(RUN) -m bittern.service.cli warm-up && wait

test test-all: ready
	@java_home=$$(scripts/java.sh) && JAVA_HOME=$$java_home $(RUN) -m pytest \
		-n 2 --dist loadfile --no-loadscope-reorder $(TESTS) $(TEST_ARGS)

# Kernels of some modules as plain Python, where nothing that a compiler assumes can hide a mistake.
# It warns where unsigned products wrap around, which hashes mean them to do.
test-plain: $(VENV)/.has-dev
	NUMBA_DISABLE_JIT=1 $(RUN) -m pytest -q -W "ignore:overflow encountered:RuntimeWarning" \
		$(PLAIN:%=tests/%.py)

# Not part of test-all: an environment for each version takes a while, and a gigabyte.
test-spark-versions: $(VENV)/.has-dev
	@scripts/spark_versions.sh .spark-versions $(VERSIONS)

check: $(VENV)/.has-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# A dead link, or a name that the reference does not find, is an error. The builder's advertisement
# for its successor is left out.
docs: $(VENV)/.has-dev
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --quiet

dist: $(VENV)/.has-dev
	@PYTHON=$(RUN) scripts/dist.sh

kafka-jars: $(VENV)/.has-dev
	@$(KAFKA_JARS)

judge-jars:
	@$(JUDGE_JARS)

s3: $(VENV)/.has-dev
	@$(S3)

bench: $(VENV)/.has-bench
	$(RUN) -m benchmarks.run $(BENCH_ARGS)

bench-papers: $(VENV)/.has-bench
	$(RUN) -m benchmarks.papers.run
	$(RUN) -m benchmarks.papers.report

bench-seed-003: $(VENV)/.has-bench
	$(RUN) -m benchmarks.papers.run --seed 003
	$(RUN) -m benchmarks.papers.report benchmarks/results/seed_003.json

bench-spark: $(VENV)/.has-dev
	java_home=$$(scripts/java.sh) && JAVA_HOME=$$java_home \
	  $(RUN) -m benchmarks.spark.run $(SPARK_BENCH_ARGS)
	$(RUN) -m benchmarks.spark.report

# One stamp per extra that a target needs.
$(VENV)/.has-%: pyproject.toml constraints.txt scripts/setup.sh
	@scripts/setup.sh $(VENV) $*
	@touch $@

bench-streaming: $(VENV)/.has-dev
	java_home=$$(scripts/java.sh) && JAVA_HOME=$$java_home \
	  $(RUN) -m benchmarks.streaming.run $(STREAMING_BENCH_ARGS)
	$(RUN) -m benchmarks.streaming.report

bench-history: $(VENV)/.has-bench
	$(RUN) -m benchmarks.history.run $(HISTORY_BENCH_ARGS)
	$(RUN) -m benchmarks.history.report

bench-pb-tree: $(VENV)/.has-bench
	$(RUN) -m benchmarks.pb_tree.run $(PB_TREE_BENCH_ARGS)
	$(RUN) -m benchmarks.pb_tree.report

# Lucene's Monitor is built first; if it cannot be, it is left out, and said.
bench-serve: $(VENV)/.has-dev
	@scripts/monitor.sh .monitor || true
	java_home=$$(scripts/java.sh) && PATH=$$java_home/bin:$$PATH \
	  $(RUN) -m benchmarks.serve.run $(SERVE_BENCH_ARGS)
	$(RUN) -m benchmarks.serve.report

# Other engines are built first; what cannot be built is left out, and said.
rivals: $(VENV)/.has-bench
	@scripts/rivals.sh .rivals $(VENV)/bin/python
	java_home=$$(scripts/java.sh) && PATH=$$java_home/bin:$$PATH \
	  $(RUN) -m benchmarks.rivals.run --patterns --ranges $(RIVALS_ARGS)
	$(RUN) -m benchmarks.rivals.report

conformance: $(VENV)/.has-dev
	java_home=$$(scripts/java.sh) && JAVA_HOME=$$java_home $(RUN) -m benchmarks.conformance.run
	$(RUN) -m benchmarks.conformance.report

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log artifacts demo-output console-data .jvm
	rm -rf .spark-versions .kafka .kafka.partial .judges .judges.partial .rivals .rivals.partial .monitor .monitor.partial
	rm -rf .s3 .s3.partial
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
