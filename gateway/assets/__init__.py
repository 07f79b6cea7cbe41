"""Audio files of calls: `AudioAssets` loads them from the app, the web and storage buckets."""

from gateway.assets.app_files import ReadAppFile
from gateway.assets.loader import AudioAssets
from gateway.assets.runner import Runner, ThreadRunner, run_inline

__all__ = ["AudioAssets", "ReadAppFile", "Runner", "ThreadRunner", "run_inline"]
