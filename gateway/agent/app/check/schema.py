"""The keys and fixed words of the export format.

Source of the names: the published `google-cloud-ces` protos.
"""

from __future__ import annotations

_COMMON = "name displayName description createTime updateTime etag generatedSummary"

KEYS: dict[str, frozenset[str]] = {
    folder: frozenset(f"{_COMMON} {keys}".split())
    for folder, keys in {
        "": "pinned rootAgent languageSettings timeZoneSettings audioProcessingConfig "
        "loggingSettings errorHandlingSettings modelSettings toolExecutionMode "
        "evaluationMetricsThresholds variableDeclarations predefinedVariableDeclarations "
        "globalInstruction guardrails dataStoreSettings defaultChannelProfile metadata "
        "clientCertificateSettings vpcScSettings locked evaluationPersonas evaluationSettings "
        "deploymentCount",
        "agents": "modelSettings instruction tools childAgents beforeAgentCallbacks "
        "afterAgentCallbacks beforeModelCallbacks afterModelCallbacks beforeToolCallbacks "
        "afterToolCallbacks guardrails toolsets transferRules llmAgent remoteDialogflowAgent",
        "tools": "executionType timeout toolFakeConfig clientFunction openApiTool "
        "googleSearchTool connectorTool dataStoreTool pythonFunction mcpTool fileSearchTool "
        "systemTool agentTool widgetTool remoteAgentTool",
        "toolsets": "timeout executionType toolFakeConfig mcpToolset openApiToolset "
        "connectorToolset",
        "guardrails": "enabled action contentFilter llmPromptSecurity llmPolicy modelSafety "
        "codeCallback",
        "examples": "entryAgent messages invalid",
        "evaluations": "tags evaluationDatasets createdBy lastUpdatedBy evaluationRuns "
        "aggregatedMetrics lastCompletedResult invalid lastTenResults "
        "evaluationMetricsThresholdOverride evaluationMetricsConfigOverride golden scenario",
        "evaluationDatasets": "evaluations createdBy lastUpdatedBy aggregatedMetrics",
        "evaluationExpectations": "tags llmCriteria",
    }.items()
}
"""Folder of an object (`""`: the app's own) → the keys that it may have."""

AUDIO_KEYS = frozenset(
    ["synthesizeSpeechConfigs", "bargeInConfig", "inactivityTimeout", "ambientSoundConfig"]
)
CALLBACK_KEYS = frozenset(["description", "disabled", "pythonCode", "proactiveExecutionEnabled"])

TOOL_KINDS = (
    "pythonFunction",
    "dataStoreTool",
    "clientFunction",
    "openApiTool",
    "googleSearchTool",
    "connectorTool",
    "mcpTool",
    "fileSearchTool",
    "systemTool",
    "agentTool",
    "widgetTool",
    "remoteAgentTool",
)
TOOLSET_KINDS = ("openApiToolset", "mcpToolset", "connectorToolset")
GUARDRAIL_KINDS = (
    "contentFilter",
    "llmPromptSecurity",
    "llmPolicy",
    "modelSafety",
    "codeCallback",
)
CLOUD_ONLY = frozenset(
    {
        "dataStoreTool",
        "googleSearchTool",
        "connectorTool",
        "fileSearchTool",
        "widgetTool",
        "remoteAgentTool",
        "connectorToolset",
    }
)
"""Kinds that work in Google's cloud only; elsewhere the model hears that they are not available."""

ENUMS: dict[str, frozenset[str]] = {
    key: frozenset(words.split())
    for key, words in {
        "toolExecutionMode": "PARALLEL SEQUENTIAL",
        "executionType": "SYNCHRONOUS ASYNCHRONOUS",
        "errorHandlingStrategy": "NONE FALLBACK_RESPONSE END_SESSION",
        "channelType": "UNKNOWN WEB_UI API TWILIO GOOGLE_TELEPHONY_PLATFORM "
        "CONTACT_CENTER_AS_A_SERVICE FIVE9 CONTACT_CENTER_INTEGRATION WHATSAPP INSTAGRAM "
        "CONTACT_CENTER_AS_A_SERVICE_CHAT",
        "persona": "UNKNOWN CONCISE CHATTY",
        "matchType": "SIMPLE_STRING_MATCH WORD_BOUNDARY_STRING_MATCH REGEXP_MATCH",
        "policyScope": "USER_QUERY AGENT_RESPONSE USER_QUERY_AND_AGENT_RESPONSE",
        "direction": "PARENT_TO_CHILD CHILD_TO_PARENT",
        "modalityType": "TEXT AUDIO",
        "filterParameterBehavior": "ALWAYS_INCLUDE NEVER_INCLUDE",
        "requestLocation": "HEADER QUERY_STRING",
        "oauthGrantType": "CLIENT_CREDENTIAL",
        "prebuiltAmbientNoise": "RETAIL_STORE CONVENTION_HALL OUTDOOR",
        "prebuiltAmbientSound": "coffee_shop keyboard keypad hum office_1 office_2 office_3 "
        "room_1 room_2 room_3 room_4 room_5 air_conditioner",
        "threshold": "BLOCK_LOW_AND_ABOVE BLOCK_MEDIUM_AND_ABOVE BLOCK_ONLY_HIGH BLOCK_NONE OFF",
    }.items()
}
"""Key → its words; `…_UNSPECIFIED` and the empty text are legal with each."""

SCHEMA_TYPES = frozenset(["STRING", "INTEGER", "NUMBER", "BOOLEAN", "OBJECT", "ARRAY"])

PREDEFINED_VARIABLES = frozenset({"current_date", "current_time", "current_datetime"})
"""Variables that the platform declares itself."""

PLATFORM_MODULES = frozenset({"pydantic", "numpy", "google", "requests", "ces_requests", "orjson"})
"""What app code may import beside the standard library."""
