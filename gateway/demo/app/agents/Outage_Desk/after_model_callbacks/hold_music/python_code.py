import json
from typing import Optional

MUSIC = {"audioUri": "audio/hold_music.wav", "cancellable": True, "loop": True}


def after_model_callback(
    callback_context: CallbackContext, llm_response: LlmResponse
) -> Optional[LlmResponse]:
    """Puts music before the slow test of the line; it stops when the test is done."""
    parts = llm_response.content.parts
    for index, part in enumerate(parts):
        if part.has_function_call("check_line"):
            music = Part.from_json(data=json.dumps(MUSIC))
            return LlmResponse.from_parts(parts[:index] + [music] + parts[index:])
    return None
