import json
from typing import Optional

GREETING = {
    "audioUri": "audio/greeting.wav",
    "transcript": "Welcome to Northlight Energy. How can I help you today?",
    "interruptable": False,
}


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Greets with a recording that the caller cannot cut short."""
    for part in callback_context.get_last_user_input():
        if part.text == "<event>session start</event>":
            return LlmResponse.from_parts([Part.from_json(data=json.dumps(GREETING))])
    return None
