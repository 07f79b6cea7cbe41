def after_model_callback(callback_context, llm_response):
    parts = llm_response.content.parts
    ends = [i for i, part in enumerate(parts) if part.has_function_call("end_session")]
    if not ends:
        return None
    # camelCase on purpose: the platform fits it to the function's own spelling.
    report = Part.from_function_call("file_report", {"sessionId": callback_context.session_id})
    return LlmResponse.from_parts([*parts[: ends[0]], report, *parts[ends[0] :]])
