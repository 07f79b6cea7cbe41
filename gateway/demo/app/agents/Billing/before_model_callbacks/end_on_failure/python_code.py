from typing import Optional


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Ends the call where a payment failed, so that nobody pays twice."""
    for part in llm_request.contents[-1].parts:
        if (
            part.has_function_response("take_payment")
            and "error" in part.function_response.response["result"]
        ):
            return LlmResponse.from_parts(
                [
                    Part.from_text(
                        "Sorry, our payment service is not working right now. "
                        "Nothing was charged. Please call again later."
                    ),
                    Part.from_end_session(reason="payment service failed"),
                ]
            )
    return None
