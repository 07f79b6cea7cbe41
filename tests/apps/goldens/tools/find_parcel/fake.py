def fake_tool_call(tool, input, callback_context):
    """Every parcel comes on Sunday."""
    return {"number": input["number"], "day": "Sunday"}
