def before_agent_callback(callback_context):
    callback_context.state["_visits"] = callback_context.state.get("_visits", 0) + 1
