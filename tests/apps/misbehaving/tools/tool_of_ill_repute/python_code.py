def tool_of_ill_repute(how: str):
    if how == "spin":
        while True:
            pass
    if how == "exit":
        raise SystemExit
    return {1, 2}
