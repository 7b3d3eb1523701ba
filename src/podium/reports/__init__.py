"""Charts of results, by Vega-Altair (extra `report`), and curves in the terminal."""

from podium.reports.charts import save_chart
from podium.reports.curves import curve
from podium.reports.watching import Watch

__all__ = ["Watch", "curve", "save_chart"]
