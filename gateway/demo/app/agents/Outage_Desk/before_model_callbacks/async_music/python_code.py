import json
from typing import Optional

MUSIC = {"audioUri": "audio/async_music.wav", "cancellable": True}


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Answers the pending booking at once; the music ends when it is done or the caller speaks."""
    for part in llm_request.contents[-1].parts:
        if part.has_function_response("book_engineer"):
            return LlmResponse.from_parts(
                [
                    Part.from_text("I am booking an engineer. Ask me anything while you wait."),
                    Part.from_json(data=json.dumps(MUSIC)),
                ]
            )
    return None
