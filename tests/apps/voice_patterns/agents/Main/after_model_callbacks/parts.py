def after_model_callback(callback_context, llm_response):
    for index, part in enumerate(llm_response.content.parts):
        if part.has_function_call("slow_tool"):
            music = Part.from_json(data='{"audioUri": "audio/music.wav", "cancellable": true}')
            parts = llm_response.content.parts
            return LlmResponse.from_parts(parts=parts[:index] + [music] + parts[index:])
        if part.has_function_call("end_session"):
            call = Part.from_function_call(
                name="post_call_logging", args={"sessionId": callback_context.session_id}
            )
            parts = llm_response.content.parts
            return LlmResponse.from_parts(parts=parts[:index] + [call] + parts[index:])
        if part.text and "rights" in part.text:
            for said in callback_context.get_last_agent_output():
                if said.text and "DISCLAIMER" in said.text:
                    return None
            return LlmResponse.from_parts(
                parts=[Part.from_text("DISCLAIMER"), *llm_response.content.parts]
            )
    return None
