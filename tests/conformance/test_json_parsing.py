"""Raw JSON texts, well-formed and not, against the schema `true`.

`y_` files are accepted (but for duplicate keys, refused by design), `n_` files refused, `i_` files
may go either way.
"""

from __future__ import annotations

from pathlib import Path

from tests.conformance import runners
from tests.conformance.outcomes import complaints, known


def test_json_parsing(shared_root: Path) -> None:
    outcomes = runners.json_parsing(shared_root)
    assert len(outcomes) > 300
    assert set(known("json-parsing")) <= {outcome.item for outcome in outcomes}
    found = complaints("json-parsing", outcomes)
    assert not found, "\n".join(["", *found])
