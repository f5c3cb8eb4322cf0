"""What the structures of the papers are predicted to take, for ``bittern advise`` to compare.

``constructs.py``, ``trees.py`` and ``predicates.py`` have a family each. Those that
``stabbing="auto"`` chooses from are predicted in ``stabbing/predict.py``.
"""

from __future__ import annotations

from bittern.literature.predictions.constructs import CONSTRUCTS
from bittern.literature.predictions.predicates import PREDICATES
from bittern.literature.predictions.trees import TREES

FAMILIES = {**CONSTRUCTS, **TREES, **PREDICATES}
"""By the name of a structure."""
