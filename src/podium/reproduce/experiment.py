"""What an experiment is, and what it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from podium.errors import DataError
from podium.evaluation.tables import Table
from podium.reproduce.claims import Claim
from podium.reproduce.plain import plain

if TYPE_CHECKING:
    from podium.reproduce.work import Work


@dataclass(frozen=True)
class Figure:
    """Data of a picture: `lines` or `points` over x, `dots` of named things, or the `arrows` of [B] fig. 1.

    Attributes:
        name: of the file; each figure of an experiment has another.
        title: above the picture, with the paper's figure where there is one.
        x, y: titles of the axes.
        rows: the data, long: of lines, points and dots `series`, `x`, `y` and, if known, `low`, `high` and `panel`;
            of arrows `rank`, `label` and `score` of one list.
        kind: lines, points, dots or arrows.
        log: which axes are logarithmic: `x`, `y`, `xy` or none.

    """

    name: str
    title: str
    x: str
    y: str
    rows: list[dict[str, Any]]
    kind: str = "lines"
    log: str = ""


@dataclass(frozen=True)
class Outcome:
    """What an experiment found.

    Attributes:
        claims: with their tests; verdicts come when all claims of a paper are known.
        tables: by title.
        figures: data of pictures.
        settings: everything that must be known to repeat it, beside the code.
        data: what it was measured on.
        nothing_because: why there is nothing, where the experiment could not be done; it is tried again next time.

    """

    claims: list[Claim]
    tables: dict[str, Table] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    data: list[str] = field(default_factory=list)
    nothing_because: str = ""

    def __post_init__(self) -> None:
        names = [figure.name for figure in self.figures]
        if len(set(names)) < len(names):
            raise DataError(f"two figures of an experiment have the same name: {', '.join(names)}")
        if not self.claims and not self.nothing_because:
            raise DataError("an outcome without claims must say why: nothing_because=…")

    def to_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        values: dict[str, Any] = {
            "nothing_because": self.nothing_because, "settings": self.settings, "data": self.data,
            "claims": [claim.to_dict() for claim in self.claims],
            "tables": {title: {"columns": t.columns, "rows": t.rows} for title, t in self.tables.items()},
            "figures": [asdict(figure) for figure in self.figures],
        }  # fmt: skip
        return {name: plain(value, name) for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Outcome:
        """Back from JSON."""
        return cls(
            [Claim.from_dict(claim) for claim in values["claims"]],
            {title: Table(**table) for title, table in values["tables"].items()},
            [Figure(**figure) for figure in values["figures"]], values["settings"], values["data"],
            values["nothing_because"],
        )  # fmt: skip


@dataclass(frozen=True)
class Experiment:
    """One experiment.

    Attributes:
        title: what it is about.
        place: where the papers have it, such as `[W] table 1`.
        says: what the papers say, in one or two sentences.
        cuts: how it is smaller than theirs, and what else differs.
        run: does it.

    """

    title: str
    place: str
    says: str
    cuts: str
    run: Callable[[Work], Outcome]
