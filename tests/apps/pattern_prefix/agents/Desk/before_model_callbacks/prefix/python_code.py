def before_model_callback(callback_context, llm_request):
    for part in callback_context.get_last_user_input():
        if part.text == "<event>session start</event>":
            quick = LlmResponse.from_parts([Part.from_text("Hello, this is the museum.")])
            quick.partial = True
            return quick
    return None
