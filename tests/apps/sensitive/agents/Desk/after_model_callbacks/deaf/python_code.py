import json
from typing import Optional


def after_model_callback(
    callback_context: CallbackContext, llm_response: LlmResponse
) -> Optional[LlmResponse]:
    text = "".join(part.text or "" for part in llm_response.content.parts)
    wanted = {"Enter": False, "Thank": True}.get(text.partition(" ")[0])
    if wanted is None:
        return None
    part = Part.from_json(data=json.dumps({"listen": wanted}))
    return LlmResponse.from_parts(parts=[part, *llm_response.content.parts])
