"""Many callers at once over any dialect, and how the server treated them."""

from gateway.load.result import LoadResult
from gateway.load.run import LoadPlan, load

__all__ = ["LoadPlan", "LoadResult", "load"]
