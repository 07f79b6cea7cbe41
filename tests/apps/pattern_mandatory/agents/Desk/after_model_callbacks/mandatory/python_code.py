NOTICE = "This call is recorded."


def after_model_callback(callback_context, llm_response):
    if not callback_context.variables.get("notice_due"):
        return None
    callback_context.variables["notice_due"] = False
    if any(NOTICE in (part.text or "") for part in callback_context.get_last_agent_output()):
        return None
    return LlmResponse.from_parts([Part.from_text(NOTICE), *llm_response.content.parts])
