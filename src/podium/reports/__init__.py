"""Charts of results with Vega-Altair (extra `report`), and curves in the terminal."""

from podium.reports.charts import save_chart
from podium.reports.watching import Watch, curve

__all__ = ["Watch", "curve", "save_chart"]
