"""What a service says of itself."""

from __future__ import annotations

from msgspec import Struct

from podium.serving.models.registry import Registry
from podium.serving.models.served import ServedModel
from podium.serving.settings import Settings


class Health(Struct):
    """The process answers."""

    status: str


class Ready(Struct):
    """So many models are loaded and warm."""

    models: int


class ModelDescription(Struct):
    """A model, without any place on the host."""

    name: str
    kind: str
    digest: str
    n_features: int
    feature_names: tuple[str, ...] | None
    categories: dict[str, tuple[str, ...]]
    normalize: str | None
    loaded: str


class Description(Struct):
    """All models, and which of them answer where a request names none."""

    default: str
    split: dict[str, float]
    shadow: str | None
    models: list[ModelDescription]


def description(settings: Settings, registry: Registry) -> Description:
    """What clients may know of the models."""
    models = [_described(model) for model in registry.models.values()]
    return Description(settings.default, dict(settings.split), settings.shadow, models)


def _described(served: ServedModel) -> ModelDescription:
    model = served.model
    categories = {str(feature): names for feature, names in model.encoding.categories.items()}
    return ModelDescription(
        served.name, repr(model), served.digest, model.n_features, model.feature_names, categories,
        model.reading.get("normalize"), served.loaded.isoformat(timespec="seconds"),
    )  # fmt: skip
