import json
from typing import Optional


def before_model_callback(
    callback_context: CallbackContext, llm_request: LlmRequest
) -> Optional[LlmResponse]:
    """Sends the balance to the caller's screen while the model words its answer."""
    last = llm_request.contents[-1].parts[-1]
    if last.has_function_response("get_balance"):
        card = {"balanceCard": last.function_response.response["result"]}
        response = LlmResponse.from_parts([Part.from_json(data=json.dumps(card))])
        response.partial = True
        return response
    return None
