"""Feature sets: a small one for any index, and those of MSLR-WEB and LETOR 4.0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from podium.errors import DataError
from podium.features.attributes import Attribute, CharacterLength, Slashes
from podium.features.feature import Feature
from podium.features.feature_set import FeatureSet
from podium.features.matches import STATISTICS
from podium.features.proximity import min_span, ordered_bigrams, unordered_bigrams
from podium.features.ranking_functions import BM25, BM25F, lm_absolute, lm_dirichlet, lm_jm, vsm
from podium.features.term_features import (
    boolean,
    covered,
    covered_ratio,
    idf,
    normalized_tf,
    query_length,
    stream_length,
    tf,
    tfidf,
)

if TYPE_CHECKING:
    from podium.features.index import Index

Fields = str | Sequence[str] | None
Stream = tuple[str, ...]
STREAMS = ("body", "anchor", "title", "url", "whole")


def default(index: Index) -> FeatureSet:
    """Return a small set of features that rank well, for the fields and attributes of an index.

    Args:
        index: the index; if it has positions, the set includes bigrams and spans.

    Example:
        >>> from podium.features import Index, default
        >>> index = Index.build([{"id": 1, "title": "Red shoes", "votes": 3}], fields={"title": "english"})
        >>> list(map(str, default(index)))[:3]
        ['bm25(title)', 'covered_ratio(title)', 'normalized_tf(title)']

    """
    names = list(index.fields)
    streams: list[Stream] = [(name,) for name in names] + ([()] if len(names) > 1 else [])
    features: list[Feature] = []
    for stream in streams:
        features += [
            BM25(stream), covered_ratio(stream), normalized_tf(stream), tfidf(stream, statistic="max"),
            lm_jm(stream), stream_length(stream),
        ]  # fmt: skip
        if stream and index.fields[stream[0]].has_positions:
            features += [ordered_bigrams(stream), unordered_bigrams(stream), min_span(stream)]
    if len(names) > 1:
        features.append(BM25F(tuple(names)))
    features += [idf(), query_length()]
    features += [Attribute((name,)) for name in index.attributes]
    return FeatureSet(features)


def mslr(
    body: Fields = None, anchor: Fields = None, title: Fields = None, url: Fields = None, *,
    inlinks: str | None = None, outlinks: str | None = None, pagerank: str | None = None, siterank: str | None = None,
    quality: str | None = None, quality2: str | None = None, url_clicks: str | None = None, dwell: str | None = None,
) -> FeatureSet:  # fmt: skip
    """Return the features of MSLR-WEB in their order, with the formulas and parameters of that data.

    If no query term occurs in a stream, features 111 to 125 have the smallest value among the query's other candidates,
    as in MSLR-WEB. So these values differ between training and search if the candidates do.

    Args:
        body, anchor, title, url: the fields of these streams, each one or several names. Features of a stream that is
            not passed are omitted. The stream *whole* combines all that are passed.
        inlinks, outlinks, pagerank, siterank, quality, quality2, url_clicks, dwell: the attributes of features 128 to
            133, 135 and 136; a feature is omitted if its attribute is not passed.

    Returns:
        The set. Its `left_out` lists which of the 136 features are missing, with the reasons.

    Example:
        >>> from podium.features import mslr
        >>> features = mslr(body="body", title="title")
        >>> len(features), str(features[0]), features.left_out[0]
        (75, 'covered(body)', '2 covered terms, anchor: the stream is not given')

    """
    preset = _Preset(body=body, anchor=anchor, title=title, url=url)
    preset.by_stream("covered terms", covered)
    preset.by_stream("covered terms ratio", covered_ratio)
    preset.by_stream("stream length", stream_length)
    preset.by_stream("idf", idf)
    for statistic in STATISTICS:
        preset.by_stream(f"tf {statistic}", tf, statistic=statistic)
    for statistic in STATISTICS:
        preset.by_stream(f"tf/L {statistic}", normalized_tf, statistic=statistic, missing=0.0)
    for statistic in STATISTICS:
        preset.by_stream(f"tf·idf {statistic}", tfidf, statistic=statistic)
    preset.by_stream("boolean", boolean)
    preset.by_stream("vector space", vsm)
    preset.ranking_functions()
    preset.url_form()
    preset.attribute("inlinks", inlinks)
    preset.attribute("outlinks", outlinks)
    preset.attribute("PageRank", pagerank, "; MSLR-WEB's scaling is not published")
    preset.attribute("SiteRank", siterank, "; MSLR-WEB's scaling is not published")
    preset.attribute("QualityScore", quality, "; Microsoft's classifier is private")
    preset.attribute("QualityScore2", quality2, "; Microsoft's classifier is private")
    preset.add("query-url clicks", None, "an index does not hold clicks by query and document")
    preset.attribute("url clicks", url_clicks)
    preset.attribute("url dwell time", dwell)
    return preset.finish()


def letor4(
    body: Fields = None, anchor: Fields = None, title: Fields = None, url: Fields = None, *,
    pagerank: str | None = None, inlinks: str | None = None, outlinks: str | None = None, children: str | None = None,
) -> FeatureSet:  # fmt: skip
    """Return the 46 features of LETOR 4.0 (MQ2007, MQ2008) in their order.

    The published files scale every feature to 0 … 1 within a query, as `data.normalized("minmax")` does. If no query
    term occurs in a stream, language models have the smallest value among the query's other candidates, as in `mslr`.

    Args:
        body, anchor, title, url: the fields of these streams, as in `mslr`.
        pagerank, inlinks, outlinks, children: the attributes of features 41 to 43 and 46.

    Example:
        >>> from podium.features import letor4
        >>> len(letor4("body", "anchor", "title", "url", pagerank="pr", inlinks="in", outlinks="out", children="n"))
        46

    """
    preset = _Preset(body=body, anchor=anchor, title=title, url=url)
    preset.by_stream("tf", tf)
    preset.by_stream("idf", idf)
    preset.by_stream("tf·idf", tfidf)
    preset.by_stream("stream length", stream_length)
    preset.ranking_functions()
    preset.attribute("PageRank", pagerank)
    preset.attribute("inlinks", inlinks)
    preset.attribute("outlinks", outlinks)
    preset.url_form()
    preset.attribute("child pages", children)
    return preset.finish()


class _Preset:
    """The features of a published set, numbered from 1, including those that are left out."""

    def __init__(self, **fields: Fields) -> None:
        streams = {
            name: (stream,) if isinstance(stream, str) else tuple(stream) for name, stream in fields.items() if stream
        }
        if not streams:
            raise DataError("pass the field of at least one stream, for example body='body'")
        whole = tuple(field for stream in streams.values() for field in stream)
        if len(set(whole)) < len(whole):
            raise DataError(f"each field must belong to one stream only, but the streams are {streams}")
        self.streams = streams | ({"whole": whole} if len(streams) > 1 else {})
        self.features: list[Feature] = []
        self.left_out: list[str] = []

    def add(self, title: str, feature: Feature | None, reason: str = "") -> None:
        """Add the next feature, or the reason why it is left out."""
        number = len(self.features) + len(self.left_out) + 1
        if feature is None:
            self.left_out.append(f"{number} {title}: {reason}")
        else:
            self.features.append(feature)

    def by_stream(self, title: str, make: Callable[..., Feature], **options: Any) -> None:
        """Add a feature of each of the five streams."""
        for name in STREAMS:
            stream = self.streams.get(name)
            reason = "the same as the only stream" if name == "whole" else "the stream is not given"
            self.add(f"{title}, {name}", None if stream is None else make(stream, **options), reason)

    def ranking_functions(self) -> None:
        """Add BM25 and three language models with the parameters of both sets."""
        self.by_stream("BM25", BM25, k1=2.5, b=0.8, idf="robertson", scaled=True)
        self.by_stream("LMIR.ABS", lm_absolute, delta=0.7, missing="minimum")
        self.by_stream("LMIR.DIR", lm_dirichlet, mu=2000.0, missing="minimum")
        self.by_stream("LMIR.JM", lm_jm, smoothing=0.1, missing="minimum")

    def url_form(self) -> None:
        """Add slashes and length of the URL."""
        url = self.streams.get("url", ())
        for title, make in (("slashes in the url", Slashes), ("length of the url", CharacterLength)):
            self.add(title, make(url) if len(url) == 1 else None, "url must be one field")

    def attribute(self, title: str, name: str | None, note: str = "") -> None:
        """Add an attribute of documents."""
        self.add(title, None if name is None else Attribute((name,)), f"the attribute is not given{note}")

    def finish(self) -> FeatureSet:
        """Return the set."""
        return FeatureSet(self.features, self.left_out)
