import os
import re
import signal
import sys
import threading
import time

kept = []

def before_model_callback(callback_context, llm_request):
    text = " ".join(part.text or "" for part in callback_context.get_last_user_input())
    if "loop" in text:
        while True:
            pass
    if "stubborn" in text:
        while True:
            try:
                while True:
                    pass
            except BaseException:
                pass
    if "raise" in text:
        raise ValueError("secret of the caller")
    if "exit" in text:
        raise SystemExit(3)
    if "die" in text:
        os._exit(9)
    if "shout" in text:
        for number in range(10000):
            print("line", number)
        os.write(1, b'{"event": "retiring"}\n')
        sys.stdout.close()
    if "megabytes" in text:
        print("x" * 5_000_000)
        sys.stderr.write("y" * 5_000_000)
    if "close" in text:
        sys.stdout.close()
        sys.stderr.close()
        print("still there")
    if "flood" in text:
        for number in (1, 2):
            for _ in range(100):
                os.write(number, b"flood" * 100_000)
    if "freeze" in text:
        re.match("(a+)+$", "a" * 60 + "b")
    if "stop" in text:
        os.kill(os.getpid(), signal.SIGSTOP)
    if "slow" in text:
        time.sleep(0.3)
    if "fork" in text or "emigrate" in text:
        child = os.fork()
        if child == 0:
            if "emigrate" in text:
                os.setsid()
            time.sleep(600)
        return LlmResponse.from_parts([Part.from_text(f"Forked {child}.")])
    if "eat" in text:
        callback_context.state["_food"] = bytearray(1 << 30)
    if "descriptors" in text:
        while True:
            kept.append(os.open("/dev/null", os.O_RDONLY))
    if "threads" in text:
        while True:
            threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    if "hoard" in text:
        while True:
            kept.append(bytearray(1 << 24))
    if "unknown" in text and not callback_context.state.get("_asked"):
        callback_context.state["_asked"] = True
        return LlmResponse.from_parts([Part.from_function_call("nothing", {})])
    if "nonsense" in text:
        return 42
    return None
