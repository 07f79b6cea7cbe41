def before_model_callback(callback_context, llm_request):
    for part in callback_context.get_last_user_input():
        if part.text == "<event>session start</event>":
            return LlmResponse.from_parts(
                parts=[
                    Part.from_json(
                        data='{"audioUri": "audio/hello.wav", "transcript": "Hello from a file.",'
                        ' "interruptable": false, "extra": 1}'
                    ),
                    Part.from_customized_response(content="Calls are recorded.", disable_barge_in=True),
                    Part.from_text("How can I help?"),
                ]
            )
        if part.text and "prefix" in part.text:
            response = LlmResponse.from_parts([Part.from_text("One second.")])
            response.partial = True
            return response
        if part.text and "pirate" in part.text:
            callback_context.set_variable("style", "like a pirate")
            callback_context.set_variable("mood", "amused")
    return None
