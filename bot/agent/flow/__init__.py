"""Information flow to the action: label a call's arguments, and decide whether it runs."""

from bot.agent.flow.labels import label_arguments
from bot.agent.flow.policy import TABLE, Action, Decision, decide
from bot.agent.flow.spoken import SpokenWords
from bot.agent.flow.view import FlowView, flow_view

__all__ = [
    "TABLE",
    "Action",
    "Decision",
    "FlowView",
    "SpokenWords",
    "decide",
    "flow_view",
    "label_arguments",
]
