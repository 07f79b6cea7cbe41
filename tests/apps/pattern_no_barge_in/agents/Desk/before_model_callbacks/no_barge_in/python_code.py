def before_model_callback(callback_context, llm_request):
    for part in callback_context.get_last_user_input():
        if part.text == "<event>session start</event>":
            return LlmResponse.from_parts(
                [
                    Part.from_customized_response(
                        content="Calls are recorded and kept for thirty days.",
                        disable_barge_in=True,
                    ),
                    Part.from_text("Now tell me in your own words what I can do for you today."),
                ]
            )
