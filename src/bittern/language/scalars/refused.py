"""Functions of Spark's that cannot stand in a subscription, whoever computes it, and why."""

from __future__ import annotations

_ANOTHER = """
    rand randn random uuid shuffle monotonically_increasing_id randstr uniform spark_partition_id
    input_file_name input_file_block_start input_file_block_length
"""
_PRESENT = "now current_date current_timestamp curdate localtimestamp current_time"
_ROWS = """
    count sum avg mean min max first last collect_list collect_set count_if count_distinct
    approx_count_distinct first_value last_value any_value max_by min_by median mode percentile
    percentile_approx approx_percentile percentile_cont percentile_disc std stddev stddev_pop
    stddev_samp variance var_pop var_samp corr covar_pop covar_samp kurtosis skewness bool_and
    bool_or every some any bit_and bit_or bit_xor array_agg listagg string_agg histogram_numeric
    regr_count regr_slope regr_r2 regr_intercept try_sum try_avg product grouping grouping_id
    row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value
"""
_MORE_ROWS = "explode explode_outer posexplode posexplode_outer inline inline_outer stack"

#: Words that stand for another time each day, as in DATE 'today'.
PRESENT_WORDS = frozenset(("now", "today", "tomorrow", "yesterday"))
IS_PRESENT = "the present moment is not part of an event"
#: Why each of them cannot.
REFUSED = {
    **dict.fromkeys(_ANOTHER.split(), "it gives another value each time"),
    **dict.fromkeys(_PRESENT.split(), IS_PRESENT),
    **dict.fromkeys(_ROWS.split(), "it needs many rows, and a subscription sees one event"),
    **dict.fromkeys(_MORE_ROWS.split(), "it gives many rows, and a subscription has one answer"),
}
