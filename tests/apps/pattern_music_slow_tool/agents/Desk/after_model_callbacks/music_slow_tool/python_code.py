import json


def after_model_callback(callback_context, llm_response):
    out = []
    for part in llm_response.content.parts:
        if part.has_function_call("activate"):
            music = {"audioUri": "audio/music.wav", "cancellable": True, "loop": True}
            out.append(Part.from_json(data=json.dumps(music)))
        out.append(part)
    return LlmResponse.from_parts(out) if len(out) > len(llm_response.content.parts) else None
