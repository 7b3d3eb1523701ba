"""Labels and features from click logs, computed in the same way offline and online.

Each name is imported on first use.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podium.clicks.browsing_models import PositionBased as PositionBased
    from podium.clicks.browsing_models import UserBrowsing as UserBrowsing
    from podium.clicks.chain_models import DBN as DBN
    from podium.clicks.chain_models import Cascade as Cascade
    from podium.clicks.chain_models import DependentClicks as DependentClicks
    from podium.clicks.click_features import ClickFeature as ClickFeature
    from podium.clicks.click_model import ClickModel as ClickModel
    from podium.clicks.labels import ClickLabels as ClickLabels
    from podium.clicks.live import LiveLog as LiveLog
    from podium.clicks.log import ClickLog as ClickLog
    from podium.clicks.replay import Replay as Replay

_HOMES = {
    "Cascade": "chain_models",
    "ClickFeature": "click_features",
    "ClickLabels": "labels",
    "ClickLog": "log",
    "ClickModel": "click_model",
    "DBN": "chain_models",
    "DependentClicks": "chain_models",
    "LiveLog": "live",
    "PositionBased": "browsing_models",
    "Replay": "replay",
    "UserBrowsing": "browsing_models",
}

__all__ = [*_HOMES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        value = getattr(import_module(f"podium.clicks.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'podium.clicks' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
