"""What tests of faults share."""

from __future__ import annotations

from page_crashes import recorder  # noqa: F401  a fixture
