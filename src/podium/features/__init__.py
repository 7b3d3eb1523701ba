"""Features from text: an index of documents, features of (query, document) pairs, and search.

Names that need models or scikit-learn are imported on first use, because an index needs neither.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from podium.features.analyzer import Analyzer, register_analyzer
from podium.features.documents import read_judgements, read_queries
from podium.features.feature import Feature, parse, register, registered
from podium.features.feature_set import FeatureSet
from podium.features.field import Field
from podium.features.index import Index
from podium.features.presets import default, letor4, mslr

if TYPE_CHECKING:
    from podium.features.engine_export import EngineFeatures, export_features
    from podium.features.pipeline import RankedHits, SearchPipeline
    from podium.features.search_explanation import SearchExplanation
    from podium.features.transformer import PairTransformer

_LATER = {
    "EngineFeatures": "engine_export",
    "PairTransformer": "transformer",
    "RankedHits": "pipeline",
    "SearchExplanation": "search_explanation",
    "SearchPipeline": "pipeline",
    "export_features": "engine_export",
}

__all__ = [
    "Analyzer", "EngineFeatures", "Feature", "FeatureSet", "Field", "Index", "PairTransformer", "RankedHits",
    "SearchExplanation", "SearchPipeline", "default", "export_features", "letor4", "mslr", "parse", "read_judgements",
    "read_queries", "register", "register_analyzer", "registered",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
