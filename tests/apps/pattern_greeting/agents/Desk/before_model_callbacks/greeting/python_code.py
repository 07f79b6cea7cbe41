def before_model_callback(callback_context, llm_request):
    heard = [part.text for part in callback_context.get_last_user_input()]
    if "<event>session start</event>" in heard:
        return LlmResponse.from_parts([Part.from_text("Welcome to the library.")])
