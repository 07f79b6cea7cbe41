"""The history of a session: events for app code, contents for the model."""

from __future__ import annotations

from dataclasses import dataclass, field

from gateway.agent.platform import Content, Event, EventActions, Part

MAX_EVENTS = 2000
"""Older events are forgotten, in whole turns."""


@dataclass(slots=True)
class _Entry:
    event: Event
    notes: list[str] = field(default_factory=list)
    """State updates that the model reads before this event; app code does not see them."""
    hidden: bool = False
    """The model does not read it: a guardrail stopped it."""


class History:
    """Events in order. Payloads stay in events and never reach the model; transcripts do."""

    def __init__(self) -> None:
        self._entries: list[_Entry] = []
        self._count = 0

    def events(self) -> list[Event]:
        """All events, oldest first."""
        return [entry.event for entry in self._entries]

    def add(self, author: str, content: Content, invocation_id: str, timestamp: int) -> Event:
        """Append an event."""
        self._count += 1
        event = Event(
            id=f"event-{self._count}",
            author=author,
            timestamp=timestamp,
            invocation_id=invocation_id,
            content=content,
            actions=EventActions(),
        )
        self._entries.append(_Entry(event))
        self._forget()
        return event

    def remove(self, event: Event) -> None:
        """Take an event out again."""
        self._entries = [entry for entry in self._entries if entry.event is not event]

    def hide(self, event: Event) -> None:
        """Keep an event from the model; app code still sees it."""
        for entry in self._entries:
            if entry.event is event:
                entry.hidden = True

    def note(self, texts: list[str]) -> None:
        """State updates for the model, before the last event."""
        if self._entries:
            self._entries[-1].notes.extend(texts)

    def contents(self) -> list[Content]:
        """What the model reads."""
        contents = []
        for entry in self._entries:
            content = entry.event.content or Content()
            parts = [Part(text=note) for note in entry.notes]
            if content.is_model() and parts:
                contents.append(Content(parts=parts, role="user"))
                parts = []
            said = [] if entry.hidden else content.parts
            parts += [seen for part in said if (seen := _for_model(part)) is not None]
            if parts:
                contents.append(Content(parts=parts, role=content.role))
        return contents

    def _forget(self) -> None:
        if len(self._entries) <= MAX_EVENTS:
            return
        for index in range(MAX_EVENTS // 10, len(self._entries)):
            if self._entries[index].event.is_user():
                del self._entries[:index]
                return


def _for_model(part: Part) -> Part | None:
    """The part as the model sees it; None where it does not."""
    if part.inline_data is None:
        return part.model_copy()
    if part.inline_data.json_value() is None:
        return part.model_copy() if _is_media(part) else None
    transcript = part.inline_data.transcript()
    return Part(text=transcript) if transcript else None


def _is_media(part: Part) -> bool:
    mime_type = part.inline_data.mime_type if part.inline_data is not None else None
    return mime_type is not None and mime_type.startswith(("image/", "audio/", "video/"))
