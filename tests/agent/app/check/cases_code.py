"""Problems of the code in an app, each with the smallest app that has it."""

from __future__ import annotations

from gateway.agent.app.check import Code
from tests.agent.app.check.app import GOOD
from tests.agent.app.check.case import (
    CALLBACK,
    TOOL,
    TOOL_CODE,
    WARNING,
    Case,
    callback,
    other,
)


def _tool(signature: str) -> dict[str, str | bytes | None]:
    return {TOOL_CODE: f"# a tool\ndef look_up({signature}) -> dict:\n    return {{}}\n"}


_KIND = "before_model_callback"
_GUARD = "codeCallback: {beforeModelCallback: {pythonCode: guardrails/b/code.py}}\n"
_FAKE = "toolFakeConfig: {codeBlock: {pythonCode: tools/look_up/fake.py}}\n"

CODE = [
    Case(Code.SYNTAX, f"{CALLBACK}:3", callback("    x = = 1\n")),
    Case(Code.SYNTAX, f"{TOOL_CODE}:1", {TOOL_CODE: "return 1\n"}),
    Case(Code.NO_FUNCTION, f"{CALLBACK}:1", {CALLBACK: "def before_model_calback(a, b): pass\n"}),
    Case(Code.NO_FUNCTION, TOOL_CODE, {TOOL_CODE: "def another(): pass\n"}, says="look_up"),
    Case(
        Code.NO_FUNCTION,
        "guardrails/b/code.py",
        {"guardrails/b/b.yaml": other(_GUARD), "guardrails/b/code.py": ""},
    ),
    Case(
        Code.NO_FUNCTION,
        "tools/look_up/fake.py",
        {TOOL: GOOD[TOOL] + _FAKE, "tools/look_up/fake.py": "x = 1\n"},
        says="fake_tool_call",
    ),
    Case(Code.SIGNATURE, f"{CALLBACK}:1", {CALLBACK: f"def {_KIND}(callback_context): pass\n"}),
    Case(Code.SIGNATURE, f"{CALLBACK}:1", {CALLBACK: f"def {_KIND}(a, b, c): pass\n"}),
    Case(Code.SIGNATURE, f"{CALLBACK}:1", {CALLBACK: f"def {_KIND}(a, b, *, c): pass\n"}),
    Case(Code.SIGNATURE, f"{CALLBACK}:1", {CALLBACK: f"async def {_KIND}(a, b): pass\n"}),
    Case(Code.SIGNATURE, f"{TOOL_CODE}:1", {TOOL_CODE: "async def look_up(): pass\n"}),
    Case(
        Code.SIGNATURE,
        "tools/look_up/fake.py:1",
        {TOOL: GOOD[TOOL] + _FAKE, "tools/look_up/fake.py": "def fake_look_up(a): pass\n"},
    ),
    Case(Code.TOOL_KWARGS, f"{TOOL_CODE}:2", _tool("name: str, **more")),
    Case(Code.TOOL_NONE_DEFAULT, f"{TOOL_CODE}:2", _tool("name: str = None")),
    Case(Code.TOOL_NONE_DEFAULT, f"{TOOL_CODE}:2", _tool("*, name: str = None")),
    Case(Code.IMPORT, f"{CALLBACK}:3", callback("    json.dumps(1)\n"), WARNING, "json"),
    Case(Code.UNDEFINED_NAME, f"{CALLBACK}:3", callback("    tme.sleep(1)\n"), WARNING, "tme"),
    Case(
        Code.UNKNOWN_MEMBER,
        f"{CALLBACK}:3",
        callback("    callback_context.get_varible('x')\n"),
        WARNING,
        "CallbackContext has no 'get_varible'",
    ),
    Case(Code.UNKNOWN_MEMBER, f"{CALLBACK}:3", callback("    llm_request.prompt\n"), WARNING),
    Case(Code.UNKNOWN_MEMBER, f"{CALLBACK}:3", callback("    Part.from_txt('x')\n"), WARNING),
    Case(
        Code.UNKNOWN_MEMBER,
        f"{TOOL_CODE}:2",
        {TOOL_CODE: "def look_up(a: str):\n    context.save(a)\n"},
        WARNING,
        "ToolContext",
    ),
    Case(Code.MODULE, f"{CALLBACK}:3", callback("from gecx.types import Part\n")),
    Case(Code.MODULE, f"{CALLBACK}:3", callback("from .other import x\n")),
    Case(Code.MODULE, f"{CALLBACK}:3", callback("    import pandas as pd\n    pd.x()\n")),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:3",
        callback("    P = {'audio_uri': 'gs://b/a.wav'}\n"),
        says="audio_uri",
    ),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:3",
        callback('    Part.from_json(data=\'{"audioUri": "gs://b/a", "cancelable": true}\')\n'),
        says="cancelable",
    ),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:3",
        callback("    P = {'audioUri': str(1), 'interruptible': False}\n"),
        WARNING,
    ),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:4",
        callback('    u = str(1)\n    P = f\'{{"audioUri": "{u}", "cancelable": true}}\'\n'),
        says="cancelable",
    ),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:3",
        callback('    P = \'{"cancelable": true, "audioUri": "\' + str(1) + \'"}\'\n'),
        says="cancelable",
    ),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:3",
        callback("    P = dict(audio_uri=str(1))\n"),
        says="audio_uri",
    ),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:5",
        callback("    P = {}\n    P['audioUri'] = str(1)\n    P['cancelable'] = True\n"),
        says="cancelable",
    ),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:3",
        callback("    P = {'cancelable': True, 'a': 1}\n    P['audioUri'] = str(1)\n"),
        says="cancelable",
    ),
    Case(
        Code.PAYLOAD_VALUE,
        f"{CALLBACK}:3",
        callback('    P = f\'{{"audioUri": "{str(1)}", "cancellable": True}}\'\n'),
    ),
    Case(
        Code.PAYLOAD_VALUE,
        f"{CALLBACK}:3",
        callback("    P = \"{'audioUri': 'gs://b/a'}\"\n"),
    ),
    Case(Code.PAYLOAD_KEY, f"{CALLBACK}:3", callback("    Part.from_audio(audio_url=str(1))\n")),
    Case(
        Code.PAYLOAD_KEY,
        f"{CALLBACK}:3",
        callback("    Part.from_customized_response(disable_bargein=True)\n"),
    ),
    Case(
        Code.PAYLOAD_VALUE,
        f"{CALLBACK}:3",
        callback("    P = {'audioUri': str(1), 'cancellable': 'true'}\n"),
    ),
    Case(
        Code.PAYLOAD_VALUE,
        f"{CALLBACK}:3",
        callback('    P = \'{"audioUri": "gs://b/a", "cancellable": True}\'\n'),
    ),
    Case(
        Code.PAYLOAD_VALUE,
        f"{CALLBACK}:3",
        callback("    P = {'audioUri': str(1), 'listen': 'false'}\n"),
    ),
    Case(Code.PAYLOAD_VALUE, f"{CALLBACK}:3", callback("    P = {'audioUri': None}\n")),
    Case(Code.AUDIO_MISSING, f"{CALLBACK}:3", callback("    P = {'audioUri': 'a/x.wav'}\n")),
    Case(Code.AUDIO_MISSING, f"{CALLBACK}:3", callback("    Part.from_audio('../x.wav')\n")),
]
