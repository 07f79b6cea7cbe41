from typing import Optional

STILL_THERE = "Are you still there?"
STILL_THERE_AGAIN = "I cannot hear you. Are you still there?"
GOODBYE = "I will end the call now. Goodbye."


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Answers a silence with a question, the third in a row with goodbye."""
    texts = [part.text for part in callback_context.get_last_user_input() if part.text]
    if not texts or "no user activity detected" not in texts[-1]:
        callback_context.set_variable("silence_count", 0)
        return None
    count = callback_context.get_variable("silence_count", 0) + 1
    callback_context.set_variable("silence_count", count)
    if count < 3:
        question = STILL_THERE if count == 1 else STILL_THERE_AGAIN
        return LlmResponse.from_parts([Part.from_text(question)])
    return LlmResponse.from_parts(
        [Part.from_text(GOODBYE), Part.from_end_session(reason="caller silent")]
    )
