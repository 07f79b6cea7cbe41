"""How one call behaves: the app's audio settings and the operator's, as one frozen record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.bidi import SESSION_START


class BargeIn(StrEnum):
    """What of the caller interrupts the agent."""

    VAD = "vad"
    """Voice, before its words are known; and keys."""
    WORDS = "words"
    """So many words as the recogniser finds them; and keys."""
    BOTH = "both"
    """Voice or words, whichever comes first; and keys."""
    DTMF = "dtmf"
    """Keys only."""
    OFF = "off"

    @property
    def by_voice(self) -> bool:
        """Whether voice activity is enough."""
        return self is BargeIn.VAD or self is BargeIn.BOTH

    @property
    def by_words(self) -> bool:
        """Whether words that come while the agent speaks are enough."""
        return self is BargeIn.WORDS or self is BargeIn.BOTH

    @property
    def by_speech(self) -> bool:
        """Whether speech interrupts in any way."""
        return self.by_voice or self.by_words


class ProtectedKeys(StrEnum):
    """What becomes of keys that are pressed under protected audio."""

    AUTO = "auto"
    """They count where the response asks for keys; else they are ignored."""
    KEEP = "keep"
    IGNORE = "ignore"


@dataclass(frozen=True, slots=True)
class AmbientSound:
    """The sound under a call. `source`: the name of a built-in sound, or the uri of a file."""

    source: str
    builtin: bool
    gain_db: float = 0.0
    whole_call: bool = True
    """False: only under the agent's words."""


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
    variables: frozenset[str] | None = frozenset()
    """Names that the app declares: only these travel from the platform's custom parameters. None:
    they are not known here, so all do."""
    language_variable: str = ""
    """Session variable that names the language of the conversation."""
    languages: tuple[str, ...] = ()
    """Languages besides the first that callers may change to by speaking them."""

    kickoff: str = SESSION_START
    """Event that begins a session, where the client does not send its own; empty: none."""
    first_words: str = ""
    """Words that begin it in place of the event."""
    single_keys: bool = False
    """The runtime collects digits itself, as one does that listens: each key goes to it alone and
    at once."""
    end_grace_s: float = 0.0
    """Wait after the end of a session for outputs that it has overtaken, unless their turn is
    completed meanwhile."""

    # --- from audioProcessingConfig and the channel profile
    inactivity_s: float | None = None
    disable_barge_in: bool = False
    """The app's default: nothing is interruptable that does not say so itself."""
    forbid_barge_in: bool = False
    """The channel's word: nothing is interruptable at all."""
    barge_in_awareness: bool = False
    disable_dtmf: bool = False
    ambience: AmbientSound | None = None
    audio_runtime: bool = False
    """The runtime listens and speaks itself: its audio is passed through, its texts only tell
    what is said; it finds turns, interruptions and silences."""
    noise_suppression: str = ""
    """For a runtime that listens itself; the gateway's own recogniser has none."""

    # --- from the operator's settings
    lead_ms: int = 100
    barge_in: BargeIn = BargeIn.BOTH
    barge_in_words: int = 1
    """Words that interrupt, where words do."""
    echo_guard: float = 0.0
    """How much surer than `vad_start` a voice must be while the agent speaks."""
    echo_guard_windows: int = 0
    """How many more windows it must last then."""
    back_channel: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Own lists of words that show attention and do not interrupt, by language; see
    `gateway.call.backchannel`."""
    resume_after_noise: bool = False
    """Fall silent for voice, and go on where that turns out to be no words."""
    resume_wait_s: float = 3.0
    """Longest silence of that kind."""
    fade_ms: float = 10.0
    """Fade of what is cut."""
    keys_under_protection: ProtectedKeys = ProtectedKeys.AUTO
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
    number_silence_s: float = 1.5
    """The same in the middle of a number."""
    faint_words: bool = True
    """Ask the recogniser also about short sounds that voice activity does not take for speech."""
    max_segment_s: float = 30.0
    noise_limit_s: float = 8.0
    """Voice activity without words defers the inactivity tick at most this long."""

    @property
    def bed_whole_call(self) -> bool:
        """Whether the ambient sound is heard in silences too."""
        return self.ambience is None or self.ambience.whole_call

    def declares(self, name: str) -> bool:
        """Whether the app takes a variable of this name."""
        return self.variables is None or name in self.variables

    def declared(self, custom: Mapping[str, Any]) -> dict[str, Any]:
        """What of a platform's custom parameters the app takes as variables."""
        return {name: value for name, value in custom.items() if self.declares(name)}
