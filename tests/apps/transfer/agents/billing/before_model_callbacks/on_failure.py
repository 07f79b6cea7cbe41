def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    for part in llm_request.contents[-1].parts:
        if part.has_function_response("authentication") and (
            "error" in part.function_response.response["result"]
        ):
            return LlmResponse.from_parts(
                parts=[
                    Part.from_text("Something failed, I hand you over."),
                    Part.from_agent_transfer(agent="Rescue"),
                ]
            )
    return None
