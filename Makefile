# Every target sets up first: a virtual environment with pinned versions, made again only when
# pyproject.toml or constraints.txt change. Nothing outside this folder is touched, except that
# root on a machine without Java 17 gets it through apt.

VENV := .venv
RUN := $(VENV)/bin/python
# Whole runs write benchmarks/results/<date>.json; `make bench BENCH_ARGS=--small` only tries.
BENCH_ARGS := --peers
SPARK_BENCH_ARGS :=
TEST_ARGS :=

.PHONY: help demo test check bench bench-papers bench-seed-003 bench-spark clean

help:
	@echo "make demo    a shop on Spark: 200,000 subscriptions, price changes, alerts as Parquet"
	@echo "make test    the whole test suite, comparisons with Spark and DuckDB included"
	@echo "make check   lint, format and types"
	@echo "make bench   the benchmarks, beside DuckDB and Polars: JSON and tables (BENCH_ARGS)"
	@echo "make bench-papers"
	@echo "             the experiments of the papers again, beside other libraries: page and plots"
	@echo "make bench-seed-003"
	@echo "             seed 003's experiments: every strategy, half an hour and 12 GB"
	@echo "make bench-spark"
	@echo "             on Spark: beside what users write today, scaling, memory (SPARK_BENCH_ARGS)"
	@echo "make clean   remove everything that these made"

demo: $(VENV)/.has-spark
	@java_home=$$(scripts/java.sh) && JAVA_HOME=$$java_home $(RUN) -m bittern.service.demo

test: $(VENV)/.has-dev
	@java_home=$$(scripts/java.sh) && JAVA_HOME=$$java_home $(RUN) -m pytest \
		-n 2 --dist loadgroup --no-loadscope-reorder $(TEST_ARGS)

check: $(VENV)/.has-dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

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

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf spark-warehouse metastore_db derby.log artifacts demo-output
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
