"""Labels and features from click logs, computed in the same way offline and online."""

from podium.clicks.browsing_models import PositionBased, UserBrowsing
from podium.clicks.chain_models import DBN, Cascade, DependentClicks
from podium.clicks.click_features import ClickFeature
from podium.clicks.click_model import ClickModel
from podium.clicks.labels import ClickLabels
from podium.clicks.live import LiveLog
from podium.clicks.log import ClickLog
from podium.clicks.replay import Replay

__all__ = [
    "DBN",
    "Cascade",
    "ClickFeature",
    "ClickLabels",
    "ClickLog",
    "ClickModel",
    "DependentClicks",
    "LiveLog",
    "PositionBased",
    "Replay",
    "UserBrowsing",
]  # fmt: skip
