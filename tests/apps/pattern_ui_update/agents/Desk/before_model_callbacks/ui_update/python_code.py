import json


def before_model_callback(callback_context, llm_request):
    newest = llm_request.contents[-1].parts[-1]
    if not newest.has_function_response("move_order"):
        return None
    state = newest.function_response.response["result"]["state"]
    shown = LlmResponse.from_parts([Part.from_json(data=json.dumps(state))])
    shown.partial = True
    return shown
