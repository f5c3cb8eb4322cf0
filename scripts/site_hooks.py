"""What the site's builder asks while it builds (``mkdocs.yml``)."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def on_config(config: Any) -> Any:
    """The navigation gets all decision records, which are numbered."""
    records = sorted(Path(config.docs_dir, "decisions").glob("*.md"))
    pages = [{_title(each): f"decisions/{each.name}"} for each in records]
    config.nav = [*config.nav, {"Decisions": pages}]
    return config


def _title(page: Path) -> str:
    """The first heading of a page."""
    return page.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
