def before_model_callback(callback_context, llm_request):
    heard = " ".join(part.text or "" for part in callback_context.get_last_user_input())
    if "no user activity detected" not in heard:
        callback_context.state["quiet"] = 0
        return None
    quiet = callback_context.state.get("quiet", 0) + 1
    callback_context.state["quiet"] = quiet
    if quiet == 1:
        return LlmResponse.from_parts([Part.from_text("Are you still with me?")])
    return LlmResponse.from_parts(
        [Part.from_text("Then I hang up. Bye."), Part.from_end_session(reason="silence")]
    )
