"""To come."""

from __future__ import annotations

from bittern.terms.scope import Table

TABLE = Table()
