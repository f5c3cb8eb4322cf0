"""Named workloads, their runner, the engines beside ours, and the report."""
