"""How one call behaves: the app's audio settings and the operator's, as one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class VoiceConfig:
    """One entry of `synthesizeSpeechConfigs`; every field may be empty."""

    voice: str = ""
    speaking_rate: float = 1.0
    model: str = ""
    instruction: str = ""
    sample_uri: str = ""
    """A recording of the voice to be cloned."""


@dataclass(frozen=True, slots=True)
class CallProfile:
    """All settings of a call that the engine asks for. Times in seconds unless named otherwise."""

    language: str = "en-US"
    voices: Mapping[str, VoiceConfig] = field(default_factory=dict)
    variables: frozenset[str] = frozenset()
    """Names that the app declares: only these travel from the platform's custom parameters."""

    # --- from audioProcessingConfig and the channel profile
    inactivity_s: float | None = None
    disable_barge_in: bool = False
    barge_in_awareness: bool = False
    disable_dtmf: bool = False

    # --- from the operator's settings
    lead_ms: int = 100
    barge_in_by_speech: bool = True
    dtmf_finish_digit: str = "#"
    dtmf_timeout_s: float = 3.0
    dtmf_max_digits: int = 32
    dtmf_dedupe_s: float = 0.1
    start_timeout_s: float = 10.0
    turn_timeout_s: float = 60.0
    drain_s: float = 30.0
    """Longest wait for non-cancellable audio before a hang-up."""
    hangup_wait_s: float = 2.0
    """Longest wait for the runtime after the caller hung up."""
    mark_grace_s: float = 2.0
    """A mark later than this after its expected time counts as heard by the clock."""
    max_call_s: float = 3600.0
    fallback_message: str = "Sorry, something went wrong. Please call again later."
    limit_message: str = "This call has reached its time limit. Goodbye."

    # --- listening
    vad_start: float = 0.5
    vad_stop: float = 0.35
    vad_start_windows: int = 2
    pre_roll_s: float = 0.3
    pause_s: float = 0.2
    """Silence after which the turn detector is asked."""
    end_silence_s: float = 0.7
    """Silence after which the turn is over, whatever the detector said."""
    max_segment_s: float = 30.0
    noise_limit_s: float = 8.0
    """Voice activity without words defers the inactivity tick at most this long."""
    language_variable: str = ""
    """Session variable that names the language of the conversation."""
    languages: tuple[str, ...] = ()
    """Languages besides the first that callers may change to by speaking them."""
