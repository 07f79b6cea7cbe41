import json


def before_model_callback(callback_context, llm_request):
    for part in callback_context.get_last_user_input():
        if part.text == "<event>session start</event>":
            recording = {
                "audioUri": "audio/hello.wav",
                "transcript": "You have reached the harbour office.",
                "interruptable": False,
            }
            return LlmResponse.from_parts([Part.from_json(data=json.dumps(recording))])
    return None
