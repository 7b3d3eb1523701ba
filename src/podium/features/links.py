"""Features of documents from links: PageRank, HITS, degrees and the rank of sites."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np

from podium.core.array_types import Floats, Ints
from podium.core.validation import require_number, require_whole, to_path
from podium.data.frames import is_frame, narwhals_frame
from podium.data.io.parquet import import_pyarrow
from podium.errors import DataError, FileFormatError, PodiumWarning
from podium.features.names import Coded, NameCoder, code

TOLERANCE, MAX_STEPS = 1e-9, 1000
HEADER = ["source", "target"]


class HITS(NamedTuple):
    """Hubs and authorities of the documents of `Links`; each sums to 1.

    Attributes:
        hubs: documents that link to good authorities.
        authorities: documents that good hubs link to.

    """

    hubs: Floats
    authorities: Floats


class Links:
    """A graph of documents that link to each other.

    Duplicate links count once. The results do not depend on the order of the links.

    Args:
        source: the id of the document that contains each link, text or whole numbers.
        target: the id of the document that each link points to.
        documents: ids of further documents, which may have no links.

    Attributes:
        ids: the documents in ascending order, as text. All results are in this order.
        matrix: a sparse matrix of 0 and 1, sources by targets.

    Example:
        >>> from podium.features.links import Links
        >>> links = Links(["a", "b", "c"], ["b", "c", "b"])
        >>> links.in_degree.tolist()
        [0, 2, 1]
        >>> links.pagerank().round(3).tolist()
        [0.05, 0.486, 0.464]

    """

    def __init__(self, source: Any, target: Any, documents: Any = ()) -> None:
        from scipy.sparse import coo_array

        coder, sizes = NameCoder(), []
        for name, ids in (("source", source), ("target", target), ("documents", documents)):
            column = _coded(name, ids)
            coder.add(column.names, column.codes)
            sizes.append(len(column.codes))
        if sizes[0] != sizes[1]:
            raise DataError(f"each link needs both ends, but got {sizes[0]} sources and {sizes[1]} targets")
        codes, names = coder.coded()
        sources, targets, _ = np.split(codes, np.cumsum(sizes[:-1]))
        self.ids, n = list(names), len(names)
        if not n:
            raise DataError("pass at least one link or document")
        self.matrix = coo_array((np.ones(len(sources)), (sources, targets)), shape=(n, n)).tocsr()
        self.matrix.sum_duplicates()
        self.matrix.data[:] = 1.0

    @classmethod
    def read(cls, links: Any, source: str = "source", target: str = "target", documents: Any = ()) -> Links:
        r"""Read links from a frame or a text file.

        Args:
            links: a data frame; or a path to a file with a line `source<tab>target` for each link, compressed or not. A
                first line with these two words is a header, and lines that begin with # are comments.
            source, target: the columns of a frame.
            documents: ids of further documents, which may have no links.

        """
        if is_frame(links):
            frame = narwhals_frame(links)
            for name in (source, target):
                if name not in frame.columns:
                    raise DataError(f"the frame has no column {name!r}; it has {', '.join(map(repr, frame.columns))}")
            return cls(frame[source].to_numpy(), frame[target].to_numpy(), documents)
        sources, targets = _read_tsv(links)
        return cls(sources, targets, documents)

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        return f"Links({len(self):,} documents, {self.matrix.nnz:,} links)"

    @cached_property
    def in_degree(self) -> Ints:
        """The number of documents that link to each document."""
        return np.asarray(np.bincount(self.matrix.indices, minlength=len(self)))

    @cached_property
    def out_degree(self) -> Ints:
        """The number of documents that each document links to."""
        return np.asarray(np.diff(self.matrix.indptr), np.int64)

    @cached_property
    def _backward(self) -> Any:
        """The matrix of targets by sources."""
        return self.matrix.T.tocsr()

    def pagerank(
        self, damping: float = 0.85, personalized: Mapping[str, float] | None = None, tolerance: float = TOLERANCE,
        max_steps: int = MAX_STEPS,
    ) -> Floats:  # fmt: skip
        """Return the PageRank of each document; all sum to 1 (Page, Brin, Motwani and Winograd 1999).

        A surfer follows a random link with probability `damping`, and jumps to a random document otherwise. From a
        document without links the surfer always jumps.

        Args:
            damping: the probability of following a link, below 1.
            personalized: the weights of documents as targets of jumps, by document id; by default all documents are
                equally likely.
            tolerance: the iteration ends when the sum of the changes of all ranks is below this.
            max_steps: the maximum number of iterations.

        """
        require_number("damping", damping, least=0, below=1)
        _check_iteration(tolerance, max_steps)
        jump = self._jumps(personalized)
        dangling, share = self.out_degree == 0, 1.0 / np.maximum(self.out_degree, 1)

        def step(rank: Floats) -> Floats:
            followed = self._backward @ (rank * share)
            return np.asarray(damping * followed + (damping * rank[dangling].sum() + 1.0 - damping) * jump)

        return _iterate(step, jump, tolerance, max_steps, "PageRank")

    def _jumps(self, personalized: Mapping[str, float] | None) -> Floats:
        if personalized is None:
            return np.full(len(self), 1.0 / len(self))
        weights = np.zeros(len(self))
        for name, weight in personalized.items():
            place = self._place_of.get(str(name))
            if place is None:
                raise DataError(f"personalized: {name!r} is not a document of the graph")
            require_number(f"personalized[{name!r}]", weight, least=0)
            weights[place] = weight
        if not weights.any():
            raise DataError("personalized: at least one document needs a positive number")
        return np.asarray(weights / weights.sum())

    @cached_property
    def _place_of(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.ids)}

    def hits(self, tolerance: float = TOLERANCE, max_steps: int = MAX_STEPS) -> HITS:
        """Return hubs and authorities (Kleinberg 1999), computed by power iteration from equal values.

        Both are 0 everywhere if there are no links.
        """
        _check_iteration(tolerance, max_steps)
        if not self.matrix.nnz:
            return HITS(np.zeros(len(self)), np.zeros(len(self)))

        def step(authorities: Floats) -> Floats:
            return _scaled(self._backward @ _scaled(self.matrix @ authorities))

        authorities = _iterate(step, np.full(len(self), 1.0 / len(self)), tolerance, max_steps, "HITS")
        return HITS(_scaled(self.matrix @ authorities), authorities)

    def site_rank(self, site_of: Callable[[str], str] | None = None, **options: Any) -> Floats:
        """Return the PageRank of each document's site, in the graph of sites.

        A site links to another if any of its documents does. Links within a site do not count.

        Args:
            site_of: returns the site of a document id; by default the host of a URL.
            options: options of `pagerank`; `personalized` names sites.

        """
        names = [(site_of or host_of)(name) for name in self.ids]
        site, sites = code(names)
        source = site[np.repeat(np.arange(len(self)), self.out_degree)]
        target = site[self.matrix.indices]
        between = source != target
        graph = Links(Coded(source[between], sites), Coded(target[between], sites), sites)
        return graph.pagerank(**options)[site]

    def attributes(self, ids: Iterable[Any], site_of: Callable[[str], str] | None = None) -> dict[str, Floats]:
        """Return all link features of documents, as attributes for an index; NaN for documents outside the graph.

        Args:
            ids: document ids, for example `index.ids`.
            site_of: returns the site of a document id; without it, `site_rank` is omitted.

        Example:
            >>> from podium.features import FeatureSet, Index
            >>> from podium.features.links import Links
            >>> documents = [{"id": "a", "title": "Tea"}, {"id": "b", "title": "Tea house"}]
            >>> index = Index.build(documents, fields={"title": "english"})
            >>> index.set_attributes(Links(["a"], ["b"]).attributes(index.ids))
            >>> FeatureSet(["attribute(in_degree)"]).rows(index, "tea", [0, 1]).tolist()
            [[0.0], [1.0]]

        """
        hubs, authorities = self.hits()
        columns = {
            "pagerank": self.pagerank(), "hub": hubs, "authority": authorities,
            "in_degree": self.in_degree.astype(np.float64), "out_degree": self.out_degree.astype(np.float64),
        }  # fmt: skip
        if site_of is not None:
            columns["site_rank"] = self.site_rank(site_of)
        places = np.array([self._place_of.get(str(name), len(self)) for name in ids], np.int64)
        return {name: np.append(values, np.nan)[places] for name, values in columns.items()}


def anchor_texts(ids: Iterable[Any], target: Iterable[Any], text: Iterable[str | None]) -> list[list[str]]:
    """Return the sorted texts of the links that point to each document, for a field of an index.

    Args:
        ids: document ids.
        target: the id of the document that each link points to; links to documents not in `ids` are ignored.
        text: the text of each link; empty and missing texts are ignored.

    Example:
        >>> from podium.features import Index
        >>> from podium.features.links import anchor_texts
        >>> anchors = anchor_texts(["a", "b"], target=["b", "b", "x"], text=["tea house", "best tea", "coffee"])
        >>> anchors
        [[], ['best tea', 'tea house']]
        >>> documents = [{"id": "a", "anchor": anchors[0]}, {"id": "b", "anchor": anchors[1]}]
        >>> Index.build(documents, fields={"anchor": "english"}).search("tea house").ids
        ['b']

    """
    texts: dict[str, list[str]] = {str(name): [] for name in ids}
    for row, (name, words) in enumerate(zip(target, text, strict=True)):
        if words is None or words == "" or words != words:
            continue
        if not isinstance(words, str):
            raise DataError(f"text: expected the text of a link in row {row}, but got {words!r:.40}")
        if str(name) in texts:
            texts[str(name)].append(words)
    return [sorted(words) for words in texts.values()]


def host_of(url: str) -> str:
    """Return the host of a URL in lower case.

    >>> host_of("https://Example.org:8080/a"), host_of("example.org/a")
    ('example.org', 'example.org')
    """
    host = urlsplit(url if "//" in url else f"//{url}").hostname
    if not host:
        raise DataError(f"{url!r} has no host: pass site_of, a function that returns the site of a document id")
    return host


def _scaled(values: Floats) -> Floats:
    return np.asarray(values / values.sum())


def _check_iteration(tolerance: float, max_steps: int) -> None:
    require_number("tolerance", tolerance, above=0)
    require_whole("max_steps", max_steps, 1)


def _iterate(step: Callable[[Floats], Floats], start: Floats, tolerance: float, max_steps: int, name: str) -> Floats:
    """Repeat a step until the values change by less than the tolerance."""
    values = start
    for _ in range(max_steps):
        new = step(values)
        change = float(np.abs(new - values).sum())
        values = new
        if change < tolerance:
            return values
    warnings.warn(
        f"{name} stopped after max_steps={max_steps} although the values still changed by {change:.2g}: pass a larger "
        f"max_steps, or a tolerance above {tolerance:g}", PodiumWarning, stacklevel=3,
    )  # fmt: skip
    return values


def _coded(name: str, ids: Any) -> Coded:
    """Return a column of document ids as codes; raise if one is missing or of another type."""
    try:
        column = code(ids)
    except DataError as error:
        row = getattr(error, "row", None)
        raise DataError(f"{name}{'' if row is None else f', row {row}'}: {error}") from None
    missing = np.flatnonzero(column.codes < 0)
    if len(missing):
        raise DataError(f"{name}, row {missing[0]}: the id is missing")
    return column


def _read_tsv(path: str | os.PathLike[str]) -> list[Coded]:
    """Return the sources and the targets of a file."""
    pyarrow = import_pyarrow()
    from pyarrow import compute, csv

    file, problems = to_path(path), []

    def handle(row: Any) -> str:
        if not row.text.startswith("#"):
            problems.append(row)
        return "skip"

    try:
        table = csv.read_csv(
            file,
            csv.ReadOptions(column_names=HEADER, use_threads=False),  # with threads, errors have no line numbers
            csv.ParseOptions(delimiter="\t", quote_char=False, invalid_row_handler=handle),
            csv.ConvertOptions(column_types=dict.fromkeys(HEADER, pyarrow.string())),
        )
    except (pyarrow.ArrowException, OSError) as error:
        raise FileFormatError(file, f"cannot be read: {error}") from None
    if problems:
        line, text = problems[0].number, problems[0].text
        raise FileFormatError(file, f"expected a source, a tab and a target, but found {text[:40]!r}", line=line)
    table = table.filter(compute.invert(compute.starts_with(table["source"], "#")))
    if table.num_rows and [column[0].as_py() for column in table.columns] == HEADER:
        table = table.slice(1)
    columns = []
    for column in table.columns:
        coded = column.combine_chunks().dictionary_encode()
        names, codes = coded.dictionary.to_pylist(), coded.indices.to_numpy()
        if "" in names:
            row = int(np.argmax(codes == names.index("")))
            raise FileFormatError(file, f"a link has no source or no target: {table.slice(row, 1).to_pylist()[0]}")
        columns.append(Coded(codes, tuple(names)))
    return columns
