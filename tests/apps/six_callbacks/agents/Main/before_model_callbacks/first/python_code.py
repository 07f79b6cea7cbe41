def before_model_callback(callback_context: CallbackContext, llm_request: LlmRequest):
    callback_context.state["seen"] += " before_model"
