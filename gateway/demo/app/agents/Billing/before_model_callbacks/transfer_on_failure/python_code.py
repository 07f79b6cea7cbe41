from typing import Optional


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Hands the caller to another agent where a meter reading could not be stored."""
    for part in llm_request.contents[-1].parts:
        if (
            part.has_function_response("submit_meter_reading")
            and "error" in part.function_response.response["result"]
        ):
            return LlmResponse.from_parts(
                [
                    Part.from_text("Sorry, something went wrong there. Let me hand you over."),
                    Part.from_agent_transfer(agent="Escalation"),
                ]
            )
    return None
