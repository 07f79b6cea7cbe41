import threading

barrier = threading.Barrier(2)


def meet(seconds: float) -> dict:
    try:
        barrier.wait(seconds)
    except threading.BrokenBarrierError:
        return {"error": "nobody came"}
    return {"met": True}
