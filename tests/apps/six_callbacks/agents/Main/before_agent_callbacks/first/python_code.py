def before_agent_callback(callback_context):
    callback_context.state["seen"] = "before_agent"
