"""An app drawn as a tree, and the same as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text
from rich.tree import Tree

from gateway.agent.app.models import SYSTEM_TOOLS, Agent, App, CallbackKind, SourceCode, Tool
from gateway.agent.variables import text_of


def app_tree(app: App) -> Tree:
    """The app for people: settings, then the agents from the root one down."""
    tree = Tree(Text(app.display_name or "app without a name", style="bold"))
    _voices(tree, app)
    if app.variable_declarations:
        branch = tree.add(_line("variables", str(len(app.variable_declarations))))
        for name, default in app.variable_declarations.items():
            branch.add(_line(name, text_of(default) or "–"))
    if app.definition.guardrails:
        tree.add(_line("guardrails", ", ".join(app.definition.guardrails)))
    shown: set[str] = set()
    _agent(tree, app, app.root_agent, shown, "root agent")
    for agent in app.agents.values():
        if agent.display_name not in shown:
            _agent(tree, app, agent, shown, "agent")
    loose = sorted(app.tools.keys() - {name for a in app.agents.values() for name in a.tools})
    if loose:
        branch = tree.add(_line("tools of no agent", str(len(loose))))
        for name in loose:
            branch.add(_tool(app.tools[name]))
    for folder, objects in app.resources.items():
        if objects and folder not in ("guardrails", "pythonEnvFiles"):
            branch = tree.add(_line(folder, str(len(objects))))
            for name in objects:
                branch.add(Text(name))
    return tree


def _line(what: str, value: str) -> Text:
    return Text.assemble((what, "dim"), " ", value)


def _voices(tree: Tree, app: App) -> None:
    audio = app.audio_processing_config
    branch = tree.add(_line("voice", app.language))
    for language, voice in audio.synthesize_speech_configs.items():
        rate = f" at {voice.speaking_rate:g}" if voice.speaking_rate else ""
        branch.add(_line(language, (voice.voice or "default voice") + rate))
    if app.inactivity_s is not None:
        branch.add(_line("asks after a silence of", f"{app.inactivity_s:g} s"))
    if audio.ambient_sound_config is not None:
        ambient = audio.ambient_sound_config
        source = ambient.prebuilt_ambient_sound or ambient.prebuilt_ambient_noise or ambient.gcs_uri
        branch.add(_line("background", f"{source} at {ambient.volume_gain_db:+g} dB"))
    if audio.barge_in_config.disable_barge_in or app.channel_profile.disable_barge_in_control:
        branch.add(Text("cannot be interrupted"))


def _agent(tree: Tree, app: App, agent: Agent, shown: set[str], what: str) -> None:
    branch = tree.add(Text.assemble((what, "dim"), " ", (agent.display_name, "bold cyan")))
    if agent.display_name in shown:
        branch.add(Text("see above", style="dim"))
        return
    shown.add(agent.display_name)
    if agent.definition.model_settings.model:
        branch.add(_line("model", agent.definition.model_settings.model))
    for name in agent.tools:
        branch.add(_tool(app.tools[name]) if name in app.tools else _other_tool(name))
    for use in agent.definition.toolsets:
        operations = ", ".join(use.tool_ids) or "all operations"
        branch.add(_line("toolset", f"{use.toolset}: {operations}"))
    if agent.definition.guardrails:
        branch.add(_line("guardrails", ", ".join(agent.definition.guardrails)))
    for kind, sources in agent.callbacks.items():
        for source in sources:
            branch.add(_line(kind.value.removesuffix("_callback"), short_name(source)))
    for name in agent.definition.child_agents:
        _agent(branch, app, app.agents[name], shown, "agent")


def _tool(tool: Tool) -> Text:
    kind = tool.kind or "unknown kind"
    when = ", asynchronous" if tool.asynchronous else ""
    limit = f", {tool.timeout_s:g} s" if tool.timeout_s is not None else ""
    return Text.assemble(
        ("tool", "dim"), " ", (tool.display_name, "green"), (f" {kind}{when}{limit}", "dim")
    )


def _other_tool(name: str) -> Text:
    what = "of the platform" if name in SYSTEM_TOOLS else "missing"
    style = "dim" if name in SYSTEM_TOOLS else "red"
    return Text.assemble(("tool", "dim"), " ", (name, "green"), (f" {what}", style))


def short_name(source: SourceCode) -> str:
    """What tells callbacks of one kind apart: the folder of the code, or its file."""
    parts = source.where.removesuffix("/python_code.py").split("/")
    return parts[-1].removesuffix(".py")


def app_data(app: App) -> dict[str, Any]:
    """The same as JSON data."""
    audio = app.audio_processing_config
    return {
        "displayName": app.display_name,
        "rootAgent": app.definition.root_agent,
        "language": app.language,
        "voices": {
            language: {"voice": voice.voice, "speakingRate": voice.speaking_rate or 1.0}
            for language, voice in audio.synthesize_speech_configs.items()
        },
        "inactivitySeconds": app.inactivity_s,
        "variables": dict(app.variable_declarations),
        "guardrails": list(app.definition.guardrails),
        "agents": {name: _agent_data(agent) for name, agent in app.agents.items()},
        "tools": {
            name: {
                "kind": tool.kind,
                "asynchronous": tool.asynchronous,
                "timeoutSeconds": tool.timeout_s,
            }
            for name, tool in app.tools.items()
        },
        "resources": {folder: list(objects) for folder, objects in app.resources.items()},
    }


def _agent_data(agent: Agent) -> dict[str, Any]:
    callbacks: Mapping[CallbackKind, tuple[SourceCode, ...]] = agent.callbacks
    return {
        "tools": list(agent.tools),
        "toolsets": [use.toolset for use in agent.definition.toolsets],
        "childAgents": list(agent.definition.child_agents),
        "callbacks": {
            kind.value: [source.where for source in sources]
            for kind, sources in callbacks.items()
            if sources
        },
    }
