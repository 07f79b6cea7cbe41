from typing import Optional

GREETING = "Hello, and thank you for calling. How can I help you?"


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Greets the caller without asking the model."""
    for part in callback_context.get_last_user_input():
        if part.text == "<event>session start</event>":
            return LlmResponse.from_parts([Part.from_text(GREETING)])
    return None
