MANNERS = {"Peter": "manner_sailor", "Bob": "manner_judge"}


def before_model_callback(callback_context, llm_request):
    chosen = MANNERS.get(callback_context.get_variable("caller", None))
    if chosen:
        callback_context.set_variable("manner", callback_context.get_variable(chosen))
