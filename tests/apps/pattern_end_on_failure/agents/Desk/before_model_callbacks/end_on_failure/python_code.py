def before_model_callback(callback_context, llm_request):
    for part in llm_request.contents[-1].parts:
        if (
            part.has_function_response("sign_in")
            and "error" in part.function_response.response["result"]
        ):
            return LlmResponse.from_parts(
                [
                    Part.from_text("That did not work, please call again tomorrow."),
                    Part.from_end_session(reason="sign-in failed"),
                ]
            )
