import re
from typing import Optional

COMPARISON = re.compile(r"cheapest|compare", re.IGNORECASE)


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Speaks at once where the model will need a while; `partial` lets the model go on."""
    for part in callback_context.get_last_user_input():
        if part.text and COMPARISON.search(part.text):
            response = LlmResponse.from_parts([Part.from_text("Let me look at that for you.")])
            response.partial = True
            return response
    return None
