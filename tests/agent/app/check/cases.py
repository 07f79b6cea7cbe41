"""Every problem with the smallest app that has it: code, place, changed files."""

from __future__ import annotations

from gateway.agent.app.check import Code
from tests.agent.app.check.app import GOOD
from tests.agent.app.check.case import (
    APP,
    CALLBACK,
    MAIN,
    TEXT,
    TOOL,
    TOOL_CODE,
    WARNING,
    Case,
    app,
    callback,
    main,
    other,
)
from tests.agent.app.check.cases_code import CODE


def _expects(expectation: str) -> dict[str, str | bytes | None]:
    turn = f"golden:\n  turns:\n    - steps:\n        - expectation: {{{expectation}}}\n"
    return {"evaluations/b/b.yaml": other(turn)}


FILES = [
    Case(Code.JSON, "tools/b/b.json:2", {"tools/b/b.json": '{\n"a" 1}'}),
    Case(Code.YAML, "tools/b/b.yaml:2", {"tools/b/b.yaml": "a: 1\nb: ]\n"}),
    Case(Code.SHAPE, "tools/b/b.yaml", {"tools/b/b.yaml": "- a\n"}),
    Case(Code.ENCODING, TEXT, {TEXT: b"\xff\xfe"}),
    Case(Code.ENCODING, "tools/b/b.yaml", {"tools/b/b.yaml": b"a: \xff"}),
    Case(
        Code.AMBIGUOUS,
        "tools/look_up/look_up.json",
        {"tools/look_up/look_up.json": "{}"},
        alone=False,
    ),
    Case(Code.AMBIGUOUS, "app.json", {"app.json": "{}"}),
    Case(Code.TEMPLATE, "agents/a.tftpl:2", {"agents/a.tftpl": "a\n${b}\n"}),
    Case(Code.TEMPLATE, "app.yaml.tftpl:1", {"app.yaml.tftpl": "a: ${b}", APP: None}),
    Case(Code.PLACEHOLDER, "app.yaml:6", app("bucketName: ${region}\n"), says="${region}"),
    Case(Code.PLACEHOLDER, "app.yaml:6", app("name: '{{ app }}'\n"), says="{{ app }}"),
    Case(Code.PLACEHOLDER, "app.yaml:6", app("name: projects/__THE_ID__/a\n"), says="__THE_ID__"),
    Case(Code.YAML, "app.yaml:6", app("name: {{ app }}\n")),
    Case(Code.SHAPE, "agents/b/b.yaml", {"agents/b/b.yaml": ""}, alone=False),
    Case(
        Code.PLACEHOLDER,
        "tools/look_up/look_up.yaml:5",
        {TOOL: GOOD[TOOL] + "timeout: $limit\n"},
        says="$limit",
        alone=False,
    ),
    Case(Code.MISSING_FILE, f"{MAIN}:2", {TEXT: None}),
    Case(Code.MISSING_FILE, f"{MAIN}:5", {CALLBACK: None}),
    Case(
        Code.MISSING_FILE,
        "toolsets/s/s.yaml:3",
        {"toolsets/s/s.yaml": other("openApiToolset:\n  openApiSchema: toolsets/s/none.yaml\n")},
    ),
    Case(
        Code.PATH,
        f"{MAIN}:6",
        main("afterModelCallbacks: [{pythonCode: ../../etc/x.py}]\n"),
    ),
    Case(Code.UNUSED_FILE, "agents/Main/old.py", {"agents/Main/old.py": ""}, WARNING),
]

OBJECTS = [
    Case(Code.DUPLICATE_KEY, f"{MAIN}:6", main("displayName: Main\n")),
    Case(Code.UNKNOWN_KEY, f"{MAIN}:6", main("childAgent: []\n"), WARNING, "childAgent"),
    Case(Code.UNKNOWN_KEY, "app.yaml:6", app("timezoneSettings: {}\n"), WARNING),
    Case(
        Code.UNKNOWN_KEY,
        "app.yaml:7",
        app("audioProcessingConfig:\n  bargeinConfig: {}\n"),
        WARNING,
    ),
    Case(Code.UNKNOWN_KEY, f"{MAIN}:7", main("afterModelCallbacks:\n- disable: true\n"), WARNING),
    Case(Code.VALUE, f"{MAIN}:6", main("modelSettings: {temperature: hot}\n"), says="temperature"),
    Case(Code.VALUE, "app.yaml:6", app("  - {description: no name}\n"), says="name"),
    Case(Code.ENUM, "app.yaml:6", app("toolExecutionMode: SEQUENCE\n"), says="toolExecutionMode"),
    Case(Code.ENUM, f"{TOOL}:5", {TOOL: GOOD[TOOL] + "executionType: ASYNC\n"}),
    Case(Code.DURATION, f"{TOOL}:5", {TOOL: GOOD[TOOL] + "timeout: 8 seconds\n"}),
    Case(Code.DURATION, "app.yaml:6", app("audioProcessingConfig: {inactivityTimeout: soon}\n")),
    Case(
        Code.NO_AGENTS,
        APP,
        {MAIN: None, TEXT: None, CALLBACK: None},
        alone=False,
    ),
    Case(
        Code.DUPLICATE_NAME,
        f"{TOOL}:1",
        {"tools/b/b.yaml": other("clientFunction: {name: b}\n", "look_up")},
    ),
    Case(Code.DUPLICATE_NAME, "app.yaml:6", app("  - name: known\n"), says="declared twice"),
    Case(
        Code.RESERVED,
        "tools/b/b.yaml:1",
        {"tools/b/b.yaml": other("clientFunction: {name: b}\n", "customize_response")},
    ),
    Case(
        Code.TOOL_KIND,
        f"{TOOL}:5",
        {TOOL: GOOD[TOOL] + "dataStoreTool: {name: x}\n"},
        says="pythonFunction and dataStoreTool",
    ),
    Case(Code.TOOL_KIND, "tools/b/b.yaml", {"tools/b/b.yaml": other()}, says="no kind"),
    Case(Code.TOOL_KIND, "guardrails/b/b.yaml", {"guardrails/b/b.yaml": other()}),
    Case(Code.TOOL_KIND, "toolsets/b/b.yaml", {"toolsets/b/b.yaml": other()}),
    Case(
        Code.NOT_AVAILABLE,
        "tools/b/b.yaml:2",
        {"tools/b/b.yaml": other("dataStoreTool: {name: b}\n")},
        WARNING,
    ),
    Case(
        Code.NOT_AVAILABLE,
        f"{MAIN}:6",
        main("remoteDialogflowAgent: {agent: x}\n"),
        WARNING,
        "Dialogflow",
    ),
    Case(
        Code.NOT_AVAILABLE,
        f"{MAIN}:6",
        main("declarativeAgent: {configSource: {}}\n"),
        WARNING,
        "declarativeAgent",
    ),
    Case(Code.NO_CODE, "tools/b/b.yaml:2", {"tools/b/b.yaml": other("pythonFunction: {}\n")}),
    Case(Code.VARIABLE_TYPE, "app.yaml:6", app("  - {name: v, schema: {type: TEXT}}\n")),
    Case(Code.VARIABLE_TYPE, "app.yaml:6", app("  - {name: my var, schema: {type: STRING}}\n")),
    Case(
        Code.VARIABLE_TYPE,
        "app.yaml:6",
        app("  - {name: v, schema: {type: INTEGER, default: true}}\n"),
        WARNING,
    ),
    Case(Code.VARIABLE_TYPE, "app.yaml:6", app("  - {name: v, type: INTEGER}\n"), WARNING),
]

_B = {"agents/B/B.yaml": other()}
_SCHEMA = "openapi: 3.0.0\npaths:\n  /x:\n    get: {operationId: find}\n"
_TOOLSET = {
    "toolsets/s/s.yaml": "displayName: Shop\nopenApiToolset: {openApiSchema: toolsets/s/x.yaml}\n",
    "toolsets/s/x.yaml": _SCHEMA,
}

REFERENCES = [
    Case(
        Code.REFERENCE,
        "app.yaml:2",
        {APP: GOOD[APP].replace("rootAgent: Main", "rootAgent: main")},
        says="main",
    ),
    Case(Code.REFERENCE, APP, {APP: "displayName: X\n"}, alone=False),
    Case(Code.REFERENCE, f"{MAIN}:6", main("childAgents: [Nobody]\n")),
    Case(Code.REFERENCE, f"{MAIN}:3", {MAIN: GOOD[MAIN].replace("end_", "finish_")}),
    Case(Code.REFERENCE, f"{MAIN}:6", main("toolsets: [{toolset: None}]\n")),
    Case(
        Code.REFERENCE,
        f"{MAIN}:6",
        {**main("toolsets: [{toolset: Shop, toolIds: [find, seek]}]\n"), **_TOOLSET},
        says="seek",
    ),
    Case(
        Code.REFERENCE,
        f"{MAIN}:6",
        {
            **main("toolsets: [{toolset: Shop, toolIds: [search]}]\n"),
            **_TOOLSET,
            "toolsets/a/a.yaml": other("openApiToolset: {openApiSchema: toolsets/a/x.yaml}\n", "A"),
            "toolsets/a/x.yaml": _SCHEMA.replace("find", "search"),
        },
        says="search",
    ),
    Case(Code.REFERENCE, "app.yaml:6", app("languageSettings: {fallbackAction: lookup}\n")),
    Case(Code.REFERENCE, f"{MAIN}:6", main("guardrails: [none]\n")),
    Case(Code.REFERENCE, "app.yaml:6", app("guardrails: [none]\n")),
    Case(Code.REFERENCE, f"{MAIN}:6", main("transferRules: [{childAgent: Nobody}]\n")),
    Case(
        Code.REFERENCE,
        "tools/b/b.yaml:2",
        {"tools/b/b.yaml": other("agentTool: {agent: Nobody}\n")},
    ),
    Case(
        Code.REFERENCE,
        "guardrails/b/b.yaml:3",
        {
            "guardrails/b/b.yaml": other(
                "contentFilter: {}\naction: {transferAgent: {agent: Nobody}}\n"
            )
        },
    ),
    Case(Code.REFERENCE, "examples/b/b.yaml:2", {"examples/b/b.yaml": other("entryAgent: No\n")}),
    Case(
        Code.REFERENCE,
        "evaluationDatasets/b/b.yaml:2",
        {"evaluationDatasets/b/b.yaml": other("evaluations: [none]\n")},
    ),
    Case(
        Code.REFERENCE,
        "evaluations/b/b.yaml:2",
        {"evaluations/b/b.yaml": other("golden: {evaluationExpectations: [none]}\n")},
    ),
    Case(Code.REFERENCE, "evaluations/b/b.yaml:5", _expects("toolCall: {tool: lookup}"), WARNING),
    Case(
        Code.REFERENCE,
        "evaluations/b/b.yaml:5",
        {**_expects("toolCall: {tool: Shop_seek}"), **_TOOLSET},
        WARNING,
    ),
    Case(
        Code.REFERENCE,
        "evaluations/b/b.yaml:5",
        _expects("agentTransfer: {targetAgent: Nobody}"),
        WARNING,
    ),
    Case(Code.REFERENCE, f"{TEXT}:2", {TEXT: "a\n{@TOOL: lookup}\n"}, says="lookup"),
    Case(Code.REFERENCE, f"{TEXT}:1", {TEXT: "{@AGENT: Nobody}\n"}, says="Nobody"),
    Case(
        Code.REFERENCE,
        "g.txt:1",
        {"g.txt": "{@TOOL: none}", **app("globalInstruction: g.txt\n")},
    ),
    Case(Code.REFERENCE, f"{CALLBACK}:3", callback("    tools.none({})\n")),
    Case(Code.REFERENCE, f"{CALLBACK}:3", {**callback("    tools.Shop_seek({})\n"), **_TOOLSET}),
    Case(Code.REFERENCE, f"{CALLBACK}:3", callback("    Part.from_agent_transfer('Nobody')\n")),
    Case(Code.REFERENCE, f"{CALLBACK}:3", callback("    Part.from_function_call('none', {})\n")),
    Case(
        Code.SEVERAL_PARENTS,
        f"{MAIN}:6",
        {
            **main("childAgents: [B, C]\n"),
            **_B,
            "agents/C/C.yaml": other("childAgents: [B]\n", "C"),
        },
    ),
    Case(
        Code.SEVERAL_PARENTS,
        f"{MAIN}:6",
        {
            **main("childAgents: [C, survey]\n"),
            "agents/C/C.yaml": other("childAgents: [survey]\n", "C"),
            "agents/survey/survey.yaml": other("childAgents: [D]\n", "survey"),
            "agents/D/D.yaml": other("", "D"),
        },
    ),
    Case(
        Code.ROOT_IS_CHILD,
        "agents/B/B.yaml:2",
        {**main("childAgents: [B]\n"), "agents/B/B.yaml": other("childAgents: [Main]\n")},
    ),
    Case(
        Code.CYCLE,
        "agents/C/C.yaml:2",
        {
            **main("childAgents: [B]\n"),
            "agents/B/B.yaml": other("childAgents: [C]\n"),
            "agents/C/C.yaml": other("childAgents: [B]\n", "C"),
        },
        WARNING,
        alone=False,
    ),
    Case(Code.UNREACHABLE, "agents/B/B.yaml", _B, WARNING),
    Case(Code.UNDECLARED, f"{TEXT}:2", {TEXT: "a\n{{unknown}}\n"}, says="{{unknown}}"),
    Case(Code.UNDECLARED, f"{TEXT}:1", {TEXT: "{unknown}\n"}, WARNING),
    Case(
        Code.UNDECLARED,
        f"{CALLBACK}:3",
        callback("    callback_context.state['unknown'] = 1\n"),
        WARNING,
    ),
    Case(
        Code.UNDECLARED,
        f"{CALLBACK}:3",
        callback("    callback_context.variables.get('new')\n"),
        WARNING,
    ),
    Case(
        Code.UNDECLARED,
        f"{TOOL_CODE}:3",
        {TOOL_CODE: GOOD[TOOL_CODE] + "    set_variable('unknown', 1)\n"},
        WARNING,
    ),
    Case(
        Code.NOT_LISTED,
        f"{TEXT}:1",
        {TEXT: "{@TOOL: customize_response}\n"},
        WARNING,
    ),
    Case(
        Code.NOT_LISTED,
        f"{CALLBACK}:3",
        {
            **callback("    Part.from_end_session(reason='x')\n"),
            MAIN: GOOD[MAIN].replace(", end_session", ""),
        },
        WARNING,
    ),
    Case(Code.REFERENCE_SYNTAX, f"{TEXT}:1", {TEXT: "{@tool: look_up}\n"}, WARNING),
    Case(Code.REFERENCE_SYNTAX, f"{TEXT}:2", {TEXT: "\n{@TOOL look_up}\n"}, WARNING),
]


def _audio(text: str) -> dict[str, str | bytes | None]:
    return app(f"audioProcessingConfig:\n  {text}\n")


AUDIO = [
    Case(
        Code.AUDIO_RANGE,
        "app.yaml:7",
        _audio("synthesizeSpeechConfigs: {en-US: {speakingRate: 0.1}}"),
    ),
    Case(
        Code.AUDIO_RANGE,
        "app.yaml:7",
        _audio("synthesizeSpeechConfigs: {en-US: {speakingRate: 2.5}}"),
    ),
    Case(
        Code.AUDIO_RANGE,
        "app.yaml:7",
        _audio("ambientSoundConfig: {prebuiltAmbientSound: hum, volumeGainDb: 20}"),
    ),
    Case(
        Code.AUDIO_RANGE,
        "app.yaml:7",
        _audio("ambientSoundConfig: {prebuiltAmbientSound: hum, volumeGainDb: 12}"),
        WARNING,
    ),
    Case(Code.AUDIO_SOURCE, "app.yaml:7", _audio("ambientSoundConfig: {volumeGainDb: -6}")),
    Case(
        Code.AUDIO_SOURCE,
        "app.yaml:7",
        _audio("ambientSoundConfig: {prebuiltAmbientSound: hum, gcsUri: gs://b/a.wav}"),
    ),
    Case(Code.AUDIO_SOURCE, "app.yaml:7", _audio("ambientSoundConfig: {gcsUri: /a.wav}")),
    Case(Code.ENUM, "app.yaml:7", _audio("ambientSoundConfig: {prebuiltAmbientSound: forest}")),
    Case(Code.LANGUAGE, "app.yaml:7", _audio("synthesizeSpeechConfigs: {English: {}}")),
    Case(Code.LANGUAGE, "app.yaml:7", _audio("synthesizeSpeechConfigs: {en-US: {}, en-us: {}}")),
    Case(Code.LANGUAGE, "app.yaml:6", app("languageSettings: {defaultLanguageCode: en US}\n")),
    Case(Code.LANGUAGE, "app.yaml:6", app("languageSettings: {supportedLanguageCodes: ['1']}\n")),
    Case(Code.LANGUAGE, "app.yaml:6", app("timeZoneSettings: {timeZone: Europe/Nowhere}\n")),
]


def _auth(text: str, kind: str = "openApiToolset") -> dict[str, str | bytes | None]:
    schema = "{openapi: 3.0.0}"
    return {
        "toolsets/s/s.yaml": f"displayName: S\n{kind}:\n  openApiSchema: toolsets/s/x.yaml\n"
        f"  {text}\n",
        "toolsets/s/x.yaml": schema,
    }


SECRETS = [
    Case(Code.SECRET, f"{CALLBACK}:3", callback("    K = 'AIza" + "x" * 35 + "'\n")),
    Case(Code.SECRET, "notes.txt:2", {"notes.txt": "\n-----BEGIN RSA PRIVATE KEY-----\n"}),
    Case(Code.SECRET, f"{TEXT}:1", {TEXT: "postgres://me:hunter22@db/x\n"}),
    Case(Code.SECRET, f"{CALLBACK}:3", callback("    password = 'hunter22!x'\n"), WARNING),
    Case(
        Code.SECRET, "environment.json:1", {"environment.json": '{"api_key": "q8!kd0-33"}'}, WARNING
    ),
    Case(
        Code.SECRET,
        "toolsets/s/s.yaml:4",
        _auth("apiAuthentication: {bearerTokenConfig: {token: abc}}"),
    ),
    Case(
        Code.SECRET,
        "toolsets/s/s.yaml:4",
        _auth("apiAuthentication: {apiKeyConfig: {keyName: k, apiKeySecretVersion: abc}}"),
    ),
    Case(
        Code.SECRET,
        "toolsets/s/s.yaml:3",
        {"toolsets/s/s.yaml": other("mcpToolset:\n  customHeaders: {X: abc}\n")},
    ),
    Case(Code.SECRET, "app.yaml:6", app("clientCertificateSettings: {privateKey: abc}\n")),
]


def _taken(value: str) -> dict[str, str | bytes | None]:
    schema = f"{{name: q, in: query, x-ces-session-context: '{value}'}}"
    return {
        **_TOOLSET,
        "toolsets/s/x.yaml": _SCHEMA.replace("find}", f"find,\n  parameters: [{schema}]}}"),
    }


def _header(value: str) -> dict[str, str | bytes | None]:
    return {"toolsets/s/s.yaml": other(f"mcpToolset:\n  customHeaders:\n    X: {value}\n")}


CONTEXT = [
    Case(Code.REFERENCE, "toolsets/s/x.yaml:5", _taken("$context.sesion_id"), says="sesion_id"),
    Case(Code.REFERENCE, "toolsets/s/x.yaml:5", _taken("session_id")),
    Case(Code.REFERENCE, "toolsets/s/s.yaml:4", _header("$context.user")),
    Case(Code.UNDECLARED, "toolsets/s/x.yaml:5", _taken("$context.variables.no"), WARNING),
    Case(Code.UNDECLARED, "toolsets/s/s.yaml:4", _header("$context.variables.no"), WARNING),
    Case(Code.REFERENCE_SYNTAX, f"{TEXT}:2", {TEXT: "a\n{$context.app_id}\n"}, WARNING, "app_id"),
    Case(
        Code.REFERENCE_SYNTAX,
        "g.txt:1",
        {"g.txt": "$context.variables.known", **app("globalInstruction: g.txt\n")},
        WARNING,
    ),
]

_RULE = "transferRules:\n- childAgent: B\n  "
_GUARDRAIL = "displayName: G\nenabled: true\n"
_CERTIFICATE = "tlsConfig: {caCerts: [{cert: '#'}]}"

RUNTIME = [
    Case(
        Code.OPENAPI,
        "toolsets/s/x.yaml:2",
        {**_auth("url: https://x"), "toolsets/s/x.yaml": "a: 1\nb: ]\n"},
    ),
    Case(
        Code.OPENAPI,
        "toolsets/s/x.yaml",
        {**_auth("url: https://x"), "toolsets/s/x.yaml": "swagger: '2.0'\n"},
    ),
    Case(Code.CERTIFICATE, "toolsets/s/s.yaml:4", _auth(_CERTIFICATE)),
    Case(
        Code.GUARDRAIL,
        "guardrails/g/g.yaml:4",
        {
            "guardrails/g/g.yaml": _GUARDRAIL
            + "contentFilter: {bannedContents: [x]}\naction: {respondImmediately: {}}\n"
        },
    ),
    Case(
        Code.TRANSFER_RULE,
        f"{MAIN}:8",
        {**main("childAgents: [B]\n" + _RULE + "direction: PARENT_TO_CHILD\n"), **_B},
    ),
    Case(
        Code.EXPRESSION,
        f"{MAIN}:8",
        {
            **main(
                "childAgents: [B]\n"
                + _RULE
                + "deterministicTransfer: {expressionCondition: {expression: '1 +'}}\n"
            ),
            **_B,
        },
    ),
    Case(
        Code.SYNTAX,
        "agents/Main/r.py:1",
        {
            **main(
                "childAgents: [B]\n"
                + _RULE
                + "deterministicTransfer: {pythonCodeCondition: {pythonCode: agents/Main/r.py}}\n"
            ),
            **_B,
            "agents/Main/r.py": "def (",
        },
    ),
]

CASES = [*FILES, *OBJECTS, *REFERENCES, *CODE, *AUDIO, *SECRETS, *CONTEXT, *RUNTIME]
