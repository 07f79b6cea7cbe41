def chain() -> dict:
    first = tools.add({"first_number": 1, "second_number": 2})
    broken = tools.failing({})
    async_tools.slow_job({"seconds": 0})
    return {"sum": first.json()["sum"], "broken": broken.json()["error"]}
