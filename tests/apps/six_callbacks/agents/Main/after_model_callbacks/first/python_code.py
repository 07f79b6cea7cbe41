def after_model_callback(callback_context: CallbackContext, llm_response: LlmResponse):
    callback_context.state["seen"] += " after_model"
