from typing import Optional

NOTICE = "This figure is provisional."


def after_model_callback(
    callback_context: CallbackContext, llm_response: LlmResponse
) -> Optional[LlmResponse]:
    """Adds the notice to the first balance where the model left it out."""
    if callback_context.get_variable("provisional_said"):
        return None
    parts = llm_response.content.parts
    texts = [part.text for part in parts if part.text]
    if not any("balance" in text.lower() for text in texts):
        return None
    callback_context.set_variable("provisional_said", True)
    if any(NOTICE in text for text in texts):
        return None
    return LlmResponse.from_parts([*parts, Part.from_text(NOTICE)])
