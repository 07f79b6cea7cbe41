import json
from typing import Optional

CHIME = {"audioUri": "audio/closing.wav", "interruptable": False}


def after_model_callback(
    callback_context: CallbackContext, llm_response: LlmResponse
) -> Optional[LlmResponse]:
    """Logs the call before its session ends, and closes it with a chime."""
    parts = llm_response.content.parts
    for index, part in enumerate(parts):
        if part.has_function_call("end_session"):
            reason = part.function_call.args.get("reason", "")
            extra = [Part.from_function_call(name="post_call_log", args={"reason": reason})]
            escalated = part.function_call.args.get("session_escalated")
            if not escalated and reason != "caller hung up":
                extra.append(Part.from_json(data=json.dumps(CHIME)))
            return LlmResponse.from_parts(parts[:index] + extra + parts[index:])
    return None
