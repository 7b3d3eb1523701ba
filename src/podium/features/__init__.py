"""Features from text: an index of documents, features of (query, document) pairs, and search.

Each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.features.analyzer import Analyzer as Analyzer
    from podium.features.analyzer import register_analyzer as register_analyzer
    from podium.features.documents import read_judgements as read_judgements
    from podium.features.documents import read_queries as read_queries
    from podium.features.engine_export import EngineFeatures as EngineFeatures
    from podium.features.engine_export import export_features as export_features
    from podium.features.feature import Feature as Feature
    from podium.features.feature import parse as parse
    from podium.features.feature import register as register
    from podium.features.feature import registered as registered
    from podium.features.feature_set import FeatureSet as FeatureSet
    from podium.features.field import Field as Field
    from podium.features.index import Index as Index
    from podium.features.pipeline import RankedHits as RankedHits
    from podium.features.pipeline import SearchPipeline as SearchPipeline
    from podium.features.presets import default as default
    from podium.features.presets import letor4 as letor4
    from podium.features.presets import mslr as mslr
    from podium.features.search_explanation import SearchExplanation as SearchExplanation
    from podium.features.transformer import PairTransformer as PairTransformer

_HOMES = {
    "Analyzer": "analyzer",
    "EngineFeatures": "engine_export",
    "Feature": "feature",
    "FeatureSet": "feature_set",
    "Field": "field",
    "Index": "index",
    "PairTransformer": "transformer",
    "RankedHits": "pipeline",
    "SearchExplanation": "search_explanation",
    "SearchPipeline": "pipeline",
    "default": "presets",
    "export_features": "engine_export",
    "letor4": "presets",
    "mslr": "presets",
    "parse": "feature",
    "read_judgements": "documents",
    "read_queries": "documents",
    "register": "feature",
    "register_analyzer": "analyzer",
    "registered": "feature",
}

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"podium.features.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'podium.features' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
