"""Audio by uri: fetched, decoded, resampled and cached, once for all calls that want it."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from gateway.assets.app_files import ReadAppFile, read_app_path
from gateway.assets.cache import AudioCache, Key
from gateway.assets.deadline import Deadline
from gateway.assets.guard import Guard
from gateway.assets.http import HttpSource
from gateway.assets.runner import Runner
from gateway.assets.storage import StorageSource
from gateway.audio import ambience, files
from gateway.audio.formats import Pcm
from gateway.audio.limiting import louder
from gateway.audio.resample import resample_clip
from gateway.audio.scenes import render
from gateway.call.profile import AmbientSound
from gateway.config import AssetSettings
from gateway.errors import AssetError

MAX_PENDING = 128
"""Different files under way at once; more are refused (asset.busy)."""
_AMBIENT = "ambient:"
"""Begins the cache key of a finished loop; after it come the gain, the kind and the source."""
_GRACE_S = 1.0
"""What decoding may take beyond the time for the fetch."""


class AudioAssets:
    """All audio files of a process.

    `gs://bucket/object`, `https://…` (`http://…` if allowed), or a path from the app's root.
    """

    def __init__(
        self, settings: AssetSettings, read_app_file: ReadAppFile | None, run: Runner
    ) -> None:
        """Raises ConfigError if `ca_file` cannot be used."""
        guard = Guard(settings.allow_private_addresses, tuple(settings.allowed_hosts))
        self._settings = settings
        self._read_app_file = read_app_file
        self._run = run
        self._http = HttpSource(
            guard,
            allow_http=settings.allow_http,
            max_bytes=settings.max_bytes,
            ca_file=settings.ca_file,
        )
        self._storage = StorageSource(
            guard, max_bytes=settings.max_bytes, endpoint=settings.gcs_endpoint
        )
        self._cache = AudioCache(settings.cache_bytes, settings.cache_s)
        self._pending: dict[Key, asyncio.Task[Pcm]] = {}
        self._closed = False

    async def load(self, uri: str, rate_hz: int) -> Pcm:
        """The file's audio at `rate_hz`. Raises AssetError; every code starts with `asset.`.

        Calls for the same file share one fetch; one that is cancelled leaves it to the others.
        """
        key = (uri, rate_hz)
        loop = asyncio.get_running_loop()
        cached = self._cache.get(key, loop.time())
        if cached is not None:
            return cached
        task = self._pending.get(key)
        if task is None:
            if self._closed or len(self._pending) >= MAX_PENDING:
                raise AssetError("asset.busy", "too many files are being loaded", where=public(uri))
            task = loop.create_task(self._load(key))
            self._pending[key] = task
            task.add_done_callback(lambda done: self._done(key, done))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if task.cancelled() and not (caller and caller.cancelling()):
                # It is the loader that ends, not its caller.
                raise AssetError(
                    "asset.busy", "the gateway is closing", where=public(uri)
                ) from None
            raise

    async def aclose(self) -> None:
        """End all fetches and close all connections."""
        self._closed = True
        self._http.close()
        tasks = list(self._pending.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._storage.close()

    async def ambient_loop(self, sound: AmbientSound, rate_hz: int) -> Pcm:
        """An ambient sound at its final level, to be repeated without a seam. Raises AssetError."""
        kind = "builtin" if sound.builtin else "file"
        return await self.load(f"{_AMBIENT}{sound.gain_db:g}:{kind}:{sound.source}", rate_hz)

    async def _load(self, key: Key) -> Pcm:
        uri, rate_hz = key
        try:
            # The fetch keeps its own deadline; this one holds where it cannot (name resolution).
            async with asyncio.timeout(self._settings.timeout_s + _GRACE_S):
                pcm = await self._run(lambda: self._make(uri, rate_hz))
        except TimeoutError:
            raise Deadline(0, public(uri)).passed() from None
        self._cache.put(key, pcm, asyncio.get_running_loop().time(), ages=_scheme(uri) is not None)
        return pcm

    def _done(self, key: Key, task: asyncio.Task[Pcm]) -> None:
        del self._pending[key]
        if task.cancelled():
            return
        # Asking for the error also tells asyncio that it was seen, where every caller has left.
        error = task.exception()
        if isinstance(error, AssetError):
            self._cache.fail(key, error, task.get_loop().time())

    def _make(self, uri: str, rate_hz: int) -> Pcm:
        if uri.startswith(_AMBIENT):
            gain_db, kind, source = uri.removeprefix(_AMBIENT).split(":", 2)
            if kind == "builtin":
                return louder(render(source, rate_hz), float(gain_db))
            return ambience.loop(self._make_file(source, rate_hz), rate_hz, float(gain_db))
        return self._make_file(uri, rate_hz)

    def _make_file(self, uri: str, rate_hz: int) -> Pcm:
        data = self._fetch(uri)
        try:
            clip = files.decode(data, uri, self._settings.max_seconds)
        except AssetError as error:
            raise AssetError(
                error.code, error.message, where=public(uri), hint=error.hint
            ) from None
        return resample_clip(clip.pcm, clip.rate_hz, rate_hz)

    def _fetch(self, uri: str) -> bytes:
        where = public(uri)
        scheme = _scheme(uri)
        target = files.without_rate(uri)
        if scheme is None:
            return read_app_path(self._read_app_file, target, self._settings.max_bytes)
        deadline = Deadline.after(self._settings.timeout_s, where)
        if scheme == "gs":
            return self._storage.fetch(target, deadline)
        if scheme in ("https", "http"):
            return self._http.fetch(target, deadline)
        raise AssetError(
            "asset.scheme",
            f"{scheme}: is not fetched",
            where=where,
            hint="use gs://, https:// or a path from the app's root",
        )


def public(uri: str) -> str:
    """A uri as it may be logged: without its query, which may hold a signature."""
    return uri.partition("?")[0] if _scheme(uri) is not None else uri


def _scheme(uri: str) -> str | None:
    """The scheme in lower case; None for a path."""
    try:
        scheme = urlsplit(uri).scheme
    except ValueError:
        scheme = uri.partition(":")[0]
    return scheme.lower() if scheme and "://" in uri else None
