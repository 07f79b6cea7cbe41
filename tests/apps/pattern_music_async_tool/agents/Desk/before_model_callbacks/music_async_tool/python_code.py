def before_model_callback(callback_context, llm_request):
    if any(part.has_function_response("order") for part in llm_request.contents[-1].parts):
        return LlmResponse.from_parts(
            [
                Part.from_text("I send it off, that takes a while."),
                Part.from_audio("audio/music.wav", cancellable=True),
            ]
        )
