from typing import Optional

QUESTION = "Are you still there?"
GOODBYE = "I cannot hear you, so I will hang up now. Goodbye."


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Asks at the first silence and says goodbye at the second in a row."""
    texts = [part.text for part in callback_context.get_last_user_input() if part.text]
    if not texts or "no user activity detected" not in texts[-1]:
        callback_context.set_variable("silence_count", 0)
        return None
    count = callback_context.get_variable("silence_count", 0) + 1
    callback_context.set_variable("silence_count", count)
    if count == 1:
        return LlmResponse.from_parts([Part.from_text(QUESTION)])
    return LlmResponse.from_parts(
        [Part.from_text(GOODBYE), Part.from_end_session(reason="caller silent")]
    )
