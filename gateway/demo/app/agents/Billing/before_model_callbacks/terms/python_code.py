from typing import Optional

TERMS = (
    "Please listen to these terms. A payment plan is a credit agreement, "
    "and a missed payment may be reported."
)
QUESTION = (
    "Would you like to spread your balance over six months, "
    "or would you rather pay it all in one go at the end of this year?"
)


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Terms that cannot be talked over, then a question that can."""
    if callback_context.get_variable("terms_said"):
        return None
    for part in callback_context.get_last_user_input():
        if part.text and "payment plan" in part.text.lower():
            callback_context.set_variable("terms_said", True)
            return LlmResponse.from_parts(
                [
                    Part.from_customized_response(content=TERMS, disable_barge_in=True),
                    Part.from_text(QUESTION),
                ]
            )
    return None
