def before_model_callback(callback_context, llm_request):
    callback_context.state["_good"] = True
