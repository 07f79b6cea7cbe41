def after_agent_callback(callback_context):
    seen = callback_context.state["seen"] + " after_agent"
    return Content(parts=[Part.from_text(text=seen)], role="model")
