import json
from typing import Optional


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Sends a card where the caller asks for one."""
    for part in callback_context.get_last_user_input():
        if part.text and "card" in part.text:
            card = {"card": {"number": 4711, "day": "Monday"}}
            return LlmResponse.from_parts([Part.from_json(data=json.dumps(card))])
    return None
