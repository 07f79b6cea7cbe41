def before_model_callback(callback_context, llm_request):
    raise RuntimeError("a disabled callback must not run")
