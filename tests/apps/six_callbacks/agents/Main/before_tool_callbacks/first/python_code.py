def before_tool_callback(tool: Tool, input: dict, callback_context: CallbackContext):
    callback_context.state["seen"] += " before_tool:" + tool.name
    input["key"] = input["key"].upper()
