"""Read Parquet files in blocks of rows.

Facts that depend on a whole column, such as its shift, are computed first, one column at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from podium.core.array_types import Floats
from podium.data import frames
from podium.data.columns import to_query_ids
from podium.data.encoding import CategoriesSeen, Encoding, FeatureBuilder, Losses, fits_float32, names_of_categories
from podium.data.io.parquet import (
    as_described,
    common_description,
    import_pyarrow,
    naming_damage,
    opened_parquet,
    require_same_columns,
    stored_preferences,
    used_columns,
    without_text,
)
from podium.data.io.queries import QueryBlocks
from podium.data.io.request import Columns
from podium.data.io.text_blocks import Source, source_name
from podium.data.memory import ROW_BYTES, Budget
from podium.data.ranking_data import RankingData
from podium.data.schema import Schema

ROWS_AT_ONCE = 1 << 16  # when a single column is read
BATCH_ROWS = 1 << 13  # when all columns are read
BUFFER_BYTES = 1 << 18  # per column of the file
COLUMN_COPIES = 4  # arrays per column that is examined as a whole: values, sorted, distinct, float32


@dataclass(frozen=True)
class ColumnFacts:
    """Facts that depend on whole columns."""

    # the encoding of the features; a model's encoding has no categories that the model does not know
    encoding: Encoding
    wide: frozenset[int]  # the features whose original values are kept
    losses: tuple[str, ...]  # descriptions of what the conversion to float32 lost


@contextmanager
def opened_files(sources: Sequence[Source], columns: Columns, budget: Budget) -> Iterator[ParquetFiles]:
    """Yield all files as one table."""
    with ExitStack() as stack:
        files = [stack.enter_context(opened_parquet(source, budget, BUFFER_BYTES)) for source in sources]
        yield ParquetFiles(sources, files, columns, budget)


class ParquetFiles:
    """Open Parquet files with the same columns, as one table that is read in parts.

    The budget limits a block, and a column.
    """

    def __init__(
        self, sources: Sequence[Source], files: Sequence[tuple[Any, Any]], columns: Columns, budget: Budget
    ) -> None:
        self.sources, self.files, self.budget = sources, [file for file, _ in files], budget
        self.columns = columns
        self.roles, self.feature_names, self.categorical = columns
        self.schemas = [schema for _, schema in files]
        self.sizes = [file.metadata.num_rows for file in self.files]
        require_same_columns(sources, self.schemas, self.sizes)
        self.n_rows = sum(self.sizes)
        self.seen = CategoriesSeen()

    @cached_property
    def _assigned(self) -> tuple[dict[str, Any], list[str]]:
        return frames.assign_roles(self.schemas[0].names, self.roles, self.feature_names)

    @cached_property
    def _columns(self) -> list[str]:
        return used_columns(self.schemas[0], self.roles, self.feature_names)

    @cached_property
    def _empty(self) -> Any:
        """An empty table with column types that accommodate all files."""
        pyarrow = import_pyarrow()
        tables = [file.schema_arrow.remove_metadata().empty_table() for file in self.files]
        return pyarrow.concat_tables(tables, promote_options="permissive").select(self._columns)

    @cached_property
    def _description(self) -> dict[str, Any]:
        return common_description(self.schemas)

    @cached_property
    def _described(self) -> Encoding:
        """The encoding that the features were written with, if they are all read."""
        described = self._description.get("encoding") if self.feature_names is None else None
        return Encoding.from_json(described, len(self._assigned[1]))

    def facts(self, like: Schema | None) -> ColumnFacts:
        """Examine whole columns: all that may need a shift, or with `like` only those that the model shifts."""
        features, series_of = self._assigned[1], frames.columns_by_name(self._empty)[1]
        losses, shifts, wide = Losses(), dict(self._described.shifts), set()
        categories = dict(self._described.categories)

        def may_be_shifted(series: Any) -> bool:
            return frames.holds_numbers(series) and not fits_float32(frames.values_of(series).dtype)

        is_named = self._description.get("features_are_named") is not False
        for k, name in enumerate(features):
            feature = -1 if like is None else like.feature_of(k, name if is_named else None)
            if self._holds_categories(name):
                if like is not None and feature in like.encoding.categories:
                    categories[k] = like.encoding.categories[feature]
                elif like is None and not self._described:
                    categories[k] = names_of_categories(
                        value for part in self._parts(name) for value in frames.objects_of(part)
                    )  # fmt: skip
            elif may_be_shifted(series_of[name]) and (like is None or feature in like.encoding.shifts):
                shift, is_wide = self._shift_of(name, losses)
                if shift is not None and not self._described:
                    shifts[k] = shift
                if is_wide:
                    wide.add(k)
        return ColumnFacts(Encoding(categories, shifts), frozenset(wide), losses.words())

    def sizes_of_blocks(self, most_rows: int) -> list[int] | None:
        """Return the number of rows of each block of whole queries; None if the rows of a query are not adjacent."""
        blocks, before = QueryBlocks(most_rows), 0
        for part in self._parts(self._assigned[0]["qid"]):
            qid = to_query_ids(frames.values_of(part), len(part))
            starts = np.flatnonzero(np.concatenate([[True], np.asarray(qid[1:] != qid[:-1], bool)]))
            n_bytes = blocks.n_bytes
            for query, row in zip(qid[starts].tolist(), starts.tolist(), strict=True):
                if blocks.begin(str(query), before + row):
                    return None
            self.budget.hold("query ids", blocks.n_bytes - n_bytes, source_name(self.sources[0]))
            before += len(part)
        return blocks.sizes(self.n_rows)

    def tables(self, sizes: Iterable[int], advance: Callable[[float], None]) -> Iterator[Any]:
        """Yield all columns, in tables with these numbers of rows."""
        pyarrow = import_pyarrow()
        wanted = iter(sizes)
        held, n_held, size = [self._empty], 0, next(wanted)
        for batch in self._batches(self._columns, BATCH_ROWS):
            advance(batch.num_rows)
            rest = pyarrow.Table.from_batches([batch]).select(self._columns)
            self.budget.hold("data", _table_bytes(rest), source_name(self.sources[0]))
            while n_held + len(rest) >= size:
                n_more = size - n_held
                yield self._joined([*held, rest.slice(0, n_more)])
                self.budget.release()
                rest, held, n_held, size = rest.slice(n_more), [self._empty], 0, next(wanted, self.n_rows + 1)
                self.budget.hold("data", _table_bytes(rest), source_name(self.sources[0]))
            held.append(rest)
            n_held += len(rest)
        if n_held:
            yield self._joined(held)

    def data(self, table: Any, facts: ColumnFacts, first_row: int, has_whole_queries: bool) -> RankingData:
        """Return the rows of a table as data."""
        features = self._assigned[1]
        table = without_text(table, self.schemas, features, self.categorical)
        series_of = frames.columns_by_name(table)[1]
        categories = dict(facts.encoding.categories)
        for k, name in enumerate(features):
            if not self._described and k not in categories and self._holds_categories(name):
                categories[k] = names_of_categories(frames.objects_of(series_of[name]))
        encoding = Encoding(categories, facts.encoding.shifts)
        converted, names, roles = frames.take_apart(table, *self.columns, encoding, self.seen)
        data = RankingData(
            converted.features, **roles, feature_names=names, encoding=encoding,
            preferences=self._preferences_of(first_row, len(table)) if has_whole_queries else None,
        )  # fmt: skip
        wide = {k: frames.values_of(series_of[features[k]]) for k in sorted(facts.wide)}
        return as_described(data, self._description, self.categorical)._changed(wide=wide, losses=facts.losses)

    def _holds_categories(self, name: str) -> bool:
        is_dictionary = import_pyarrow().types.is_dictionary
        return name in self.categorical or any(is_dictionary(schema.field(name).type) for schema in self.schemas)

    def _shift_of(self, name: str, losses: Losses) -> tuple[float | None, bool]:
        """Return the shift of a column, and whether to keep its values, as if all files were read at once."""
        self.budget.hold("data", 8 * COLUMN_COPIES * self.n_rows, source_name(self.sources[0]))
        values = np.concatenate([frames.values_of(part) for part in self._parts(name)])
        builder = FeatureBuilder(np.empty((len(values), 1), np.float32))
        builder.losses = losses
        builder.set_numbers(0, repr(name), values)
        self.budget.release()
        return builder.shifts.get(0), 0 in builder.wide

    def _parts(self, name: str) -> Iterator[Any]:
        pyarrow = import_pyarrow()
        empty = self._empty.select([name])
        for batch in self._batches([name], ROWS_AT_ONCE):
            table = pyarrow.Table.from_batches([batch]).select([name])
            joined = pyarrow.concat_tables([empty, table.replace_schema_metadata(None)], promote_options="permissive")
            yield frames.columns_by_name(joined)[1][name]

    def _batches(self, names: list[str], n_rows: int) -> Iterator[Any]:
        for source, file in zip(self.sources, self.files, strict=True):
            batches = file.iter_batches(n_rows, columns=names)
            while True:
                with naming_damage(source_name(source)):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield batch

    def _joined(self, tables: list[Any]) -> Any:
        tables = [table.replace_schema_metadata(None) for table in tables]
        return import_pyarrow().concat_tables(tables, promote_options="permissive")

    @cached_property
    def preferences(self) -> Floats | None:
        """The pairs of all rows."""
        return stored_preferences(self.schemas, self.sizes)

    def _preferences_of(self, first_row: int, n_rows: int) -> Floats | None:
        """Return the pairs of some rows, which hold whole queries."""
        pairs = self.preferences
        if pairs is None:
            return None
        is_here = (pairs[:, 0] >= first_row) & (pairs[:, 0] < first_row + n_rows)
        shifted: Floats = pairs[is_here]
        shifted[:, :2] -= first_row
        return shifted


def _table_bytes(table: Any) -> int:
    """Return the memory of a table and its float32 copy: at least 12 bytes per number, plus some per row."""
    return int(max(table.nbytes, 12 * table.num_rows * table.num_columns) + ROW_BYTES * table.num_rows)
