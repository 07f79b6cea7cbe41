def after_tool_callback(tool, input, callback_context, tool_response):
    callback_context.state["seen"] += " after_tool:" + tool_response["found"]
    return {"found": "replaced"}
