def before_model_callback(callback_context, llm_request):
    for part in llm_request.contents[-1].parts:
        if part.has_function_response("async_tool"):
            return LlmResponse.from_parts(
                parts=[
                    Part.from_text("This may take a while."),
                    Part.from_audio("audio/music.wav", cancellable=True),
                ]
            )
