import json

LEAD = "You can choose: "


def after_model_callback(callback_context, llm_response):
    parts = list(llm_response.content.parts)
    for part in parts:
        if part.text is not None and part.text.startswith(LEAD):
            chips = [word.strip() for word in part.text[len(LEAD) :].rstrip(".").split(",")]
            return LlmResponse.from_parts(
                [*parts, Part.from_json(data=json.dumps({"chips": chips}))]
            )
    return None
