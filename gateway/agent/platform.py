"""What app code sees of the platform: content, requests, responses, events, contexts.

Attribute names are the platform's; every class takes its attributes as keywords, in snake_case or
camelCase, and may be changed after construction.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic.alias_generators import to_camel

from gateway.agent.app.models import END_SESSION, TRANSFER_TO_AGENT

JSON_MIME = "application/json"
AUDIO_MIME = "application/json+audio"
CUSTOMIZED_MIME = "application/json+agentResponse"
PAYLOAD_MIMES = frozenset({JSON_MIME, AUDIO_MIME, CUSTOMIZED_MIME})


class _Value(BaseModel):
    model_config = ConfigDict(
        extra="allow", alias_generator=to_camel, populate_by_name=True, protected_namespaces=()
    )


class Blob(_Value):
    """Inline data; `data` holds base64, `raw_data` the bytes themselves."""

    display_name: str | None = None
    data: bytes | None = None
    mime_type: str | None = None

    @property
    def raw_data(self) -> bytes | None:
        """The decoded bytes; assigning encodes. Raises ValueError where `data` is not base64."""
        return None if self.data is None else base64.b64decode(self.data)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "raw_data":
            name, value = "data", None if value is None else base64.b64encode(value)
        super().__setattr__(name, value)

    @classmethod
    def from_json(cls, data: str) -> Blob:
        """JSON text as a blob."""
        return _blob(data.encode(), JSON_MIME)

    def json_value(self) -> dict[str, Any] | None:
        """The JSON object inside, for the payload types; None for other types or bad content."""
        if self.mime_type not in PAYLOAD_MIMES or self.data is None:
            return None
        try:
            value = orjson.loads(base64.b64decode(self.data))
        except ValueError:
            return None
        return value if isinstance(value, dict) else None

    def transcript(self) -> str | None:
        """What the agent counts as said by this blob; None where it says nothing."""
        value = self.json_value() or {}
        key = "content" if self.mime_type == CUSTOMIZED_MIME else "transcript"
        text = value.get(key)
        return text if isinstance(text, str) and text else None


def _blob(data: bytes, mime_type: str) -> Blob:
    return Blob(data=base64.b64encode(data), mime_type=mime_type)


class FunctionCall(_Value):
    """A call of a tool that the model (or a callback) asks for."""

    id: str | None = None
    name: str | None = None
    args: dict[str, Any] | None = None
    fault: str | None = Field(default=None, exclude=True, repr=False)
    """Why the arguments cannot be read; the call is answered with this instead of being run."""


class FunctionResponse(_Value):
    """The answer to a function call."""

    id: str | None = None
    name: str | None = None
    response: dict[str, Any] | None = None
    will_continue: bool | None = None


class Part(_Value):
    """One piece of content: text, function call, function response or inline data."""

    text: str | None = None
    function_call: FunctionCall | None = None
    function_response: FunctionResponse | None = None
    inline_data: Blob | None = None
    kept: Any = Field(default=None, exclude=True, repr=False)
    """What the model wants back beside this part, in its own form; nothing for app code."""

    @classmethod
    def from_text(cls, text: str) -> Part:
        """A text part."""
        return cls(text=text)

    @classmethod
    def from_function_call(cls, name: str, args: dict[str, Any] | None = None) -> Part:
        """A call of the tool `name`."""
        return cls(function_call=FunctionCall(name=name, args=args or {}))

    @classmethod
    def from_function_response(cls, name: str, response: dict[str, Any]) -> Part:
        """The answer of the tool `name`."""
        return cls(function_response=FunctionResponse(name=name, response=response))

    @classmethod
    def from_inline_data(cls, data: bytes, mime_type: str) -> Part:
        """Raw bytes of a MIME type."""
        return cls(inline_data=_blob(data, mime_type))

    @classmethod
    def from_json(cls, data: str) -> Part:
        """A custom payload for the client, as JSON text."""
        return cls(inline_data=Blob.from_json(data))

    @classmethod
    def from_audio(
        cls, audio_uri: str, cancellable: bool = False, interruptable: bool = True
    ) -> Part:
        """A recorded audio file to play."""
        return _json_part(
            {"audioUri": audio_uri, "cancellable": cancellable, "interruptable": interruptable},
            AUDIO_MIME,
        )

    @classmethod
    def from_agent_transfer(cls, agent: str) -> Part:
        """Hand over to the agent with this display name."""
        return cls.from_function_call(TRANSFER_TO_AGENT, {"agent_name": agent})

    @classmethod
    def from_end_session(cls, *, reason: str, escalated: bool = False) -> Part:
        """End the session."""
        return cls.from_function_call(
            END_SESSION, {"reason": reason, "session_escalated": escalated}
        )

    @classmethod
    def from_customized_response(
        cls,
        *,
        content: str = "",
        disable_barge_in: bool = False,
        enable_dtmf: bool = False,
        dtmf_finish_digit: str = "#",
        dtmf_endpointing_timeout: float = 3,
    ) -> Part:
        """Speech with its own barge-in and DTMF rules; the timeout is in seconds."""
        return _json_part(
            {
                "content": content,
                "disableBargeIn": disable_barge_in,
                "enableDtmf": enable_dtmf,
                "dtmfFinishDigit": dtmf_finish_digit,
                "dtmfEndpointingTimeout": dtmf_endpointing_timeout,
            },
            CUSTOMIZED_MIME,
        )

    def text_or_transcript(self) -> str | None:
        """The text, else what the inline data says, else None."""
        if self.text is not None:
            return self.text
        return self.inline_data.transcript() if self.inline_data is not None else None

    def has_function_call(self, name: str) -> bool:
        """True where this part calls the tool of exactly this name."""
        return self.function_call is not None and self.function_call.name == name

    def has_function_response(self, name: str) -> bool:
        """True where this part answers for the tool of exactly this name."""
        return self.function_response is not None and self.function_response.name == name


def _json_part(value: dict[str, Any], mime_type: str) -> Part:
    return Part(inline_data=_blob(json.dumps(value).encode(), mime_type))


class Content(_Value):
    """Parts with a role: `user` or `model`."""

    parts: list[Part] = Field(default_factory=list)
    role: Literal["user", "model"] | None = None

    @field_validator("parts", mode="before")
    @classmethod
    def _no_parts(cls, value: Any) -> Any:
        return [] if value is None else value

    def is_user(self) -> bool:
        """True for the user's side."""
        return self.role == "user"

    def is_model(self) -> bool:
        """True for the model's side."""
        return self.role == "model"


class FunctionDeclaration(_Value):
    """A tool that the model may call."""

    name: str | None = None
    description: str | None = None
    parameters: dict[str, Any] | None = None


class ToolDeclaration(_Value):
    """Function declarations of a request."""

    function_declarations: list[FunctionDeclaration] = Field(default_factory=list)


class GenerateContentConfig(_Value):
    """System instruction and tools of a request."""

    system_instruction: Content | None = None
    tools: list[ToolDeclaration] | None = None
    excluded_tools: list[str] | None = None

    def hide_tool(self, tool_name: str) -> None:
        """Keep the model from seeing a tool in this request."""
        self.excluded_tools = [*(self.excluded_tools or []), tool_name]


class LlmRequest(_Value):
    """What the model is asked."""

    model: str | None = None
    contents: list[Content] = Field(default_factory=list)
    config: GenerateContentConfig | None = None


class LlmResponse(_Value):
    """What the model answers. `partial`: emitted, and the agent goes on."""

    content: Content | None = None
    partial: bool | None = None
    turn_complete: bool | None = None

    @classmethod
    def from_parts(cls, parts: Iterable[Part]) -> LlmResponse:
        """A response of these parts, with the role `model`."""
        return cls(content=Content(parts=list(parts), role="model"))


class EventActions(_Value):
    """What an event changed beside its content."""

    skip_summarization: bool | None = None
    state_delta: dict[str, Any] = Field(default_factory=dict)
    artifact_delta: dict[str, Any] = Field(default_factory=dict)
    transfer_to_agent: str | None = None
    escalate: bool | None = None
    requested_auth_configs: dict[str, Any] = Field(default_factory=dict)
    end_invocation: bool | None = None


class Event(_Value):
    """One entry of the session's history.

    `author`: `user` or an agent's display name; `timestamp`: Unix time, s.
    """

    id: str = ""
    author: str = ""
    timestamp: int = 0
    invocation_id: str = ""
    content: Content | None = None
    actions: EventActions = Field(default_factory=EventActions)
    long_running_tool_ids: list[str] | None = None
    partial: bool | None = None
    turn_complete: bool | None = None
    error_code: str | None = None
    error_message: str | None = None
    interrupted: bool | None = None
    branch: str | None = None
    grounding_metadata: Any = None

    def is_user(self) -> bool:
        """True for an event of the user."""
        return self.author == "user"

    def is_agent(self, agent_name: str | None = None) -> bool:
        """True for an event of this agent; without a name, of any agent."""
        return not self.is_user() if agent_name is None else self.author == agent_name

    def has_error(self) -> bool:
        """True where something went wrong."""
        return self.error_code is not None

    def parts(self) -> list[Part]:
        """The parts; empty where there is no content."""
        return self.content.parts if self.content is not None else []


class Tool(_Value):
    """The tool that a tool callback is about."""

    name: str = ""
    description: str = ""


class CallbackContext:
    """The session as app code sees it. `state` and `variables` are the same, live dictionary."""

    def __init__(
        self,
        *,
        user_content: Content | None = None,
        invocation_id: str = "",
        agent_name: str = "",
        session_id: str = "",
        state: dict[str, Any] | None = None,
        variables: dict[str, Any] | None = None,
        events: list[Event] | None = None,
        actions: EventActions | None = None,
        streaming_stage: str | None = None,
        language_code: str = "en-US",
        project_id: str = "",
        project_number: int = 0,
        location: str = "",
        app_id: str = "",
        turn_index: int = 0,
    ) -> None:
        self.user_content = user_content
        self.invocation_id = invocation_id
        self.agent_name = agent_name
        self.session_id = session_id
        values = state if state is not None else variables
        self.state: dict[str, Any] = {} if values is None else values
        self.events: list[Event] = [] if events is None else events
        self.actions = EventActions() if actions is None else actions
        self.streaming_stage = streaming_stage
        self.language_code = language_code
        self.project_id = project_id
        self.project_number = project_number
        self.location = location
        self.app_id = app_id
        self.turn_index = turn_index

    @property
    def variables(self) -> dict[str, Any]:
        """The session's variables."""
        return self.state

    def get_variable(self, key: str, default: Any = None) -> Any:
        """A variable's value."""
        return self.state.get(key, default)

    def set_variable(self, key: str, value: Any) -> None:
        """Set a variable."""
        self.state[key] = value

    def remove_variable(self, key: str) -> None:
        """Remove a variable. Raises KeyError where it does not exist."""
        del self.state[key]

    def _last_block(self, user: bool) -> list[Part]:
        end = len(self.events)
        while end and self.events[end - 1].is_user() is not user:
            end -= 1
        start = end
        while start and self.events[start - 1].is_user() is user:
            start -= 1
        return [part for event in self.events[start:end] for part in event.parts()]

    def get_last_user_input(self) -> list[Part]:
        """All parts of the last unbroken run of user events."""
        return self._last_block(user=True)

    def get_last_agent_output(self) -> list[Part]:
        """All parts of the last unbroken run of agent events."""
        return self._last_block(user=False)

    def parts(self) -> list[Part]:
        """The parts of the user's content in this turn."""
        return self.user_content.parts if self.user_content is not None else []


class ToolContext(CallbackContext):
    """A callback context with the id of the function call it serves."""

    def __init__(self, *, function_call_id: str | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self.function_call_id = function_call_id


class AsyncTools:
    """Type of the `async_tools` global, for annotations."""


INJECTED: dict[str, Any] = {
    cls.__name__: cls
    for cls in (
        Blob,
        FunctionCall,
        FunctionResponse,
        Part,
        Content,
        FunctionDeclaration,
        ToolDeclaration,
        GenerateContentConfig,
        LlmRequest,
        LlmResponse,
        EventActions,
        Event,
        CallbackContext,
        ToolContext,
        Tool,
        AsyncTools,
    )
}
"""Names that app code has without importing them."""
