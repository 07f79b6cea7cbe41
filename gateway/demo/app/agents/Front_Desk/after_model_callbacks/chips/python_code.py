import json
from typing import Optional

PREFIX = "Available options are:"


def after_model_callback(
    callback_context: CallbackContext, llm_response: LlmResponse
) -> Optional[LlmResponse]:
    """Adds the options that the model speaks as a payload for the caller's screen."""
    parts = llm_response.content.parts
    for part in parts:
        if part.text and part.text.startswith(PREFIX):
            words = part.text[len(PREFIX) :].rstrip(". ")
            chips = [word.strip() for word in words.replace(" and ", ", ").split(",")]
            payload = {"chips": [chip for chip in chips if chip]}
            return LlmResponse.from_parts([*parts, Part.from_json(data=json.dumps(payload))])
    return None
