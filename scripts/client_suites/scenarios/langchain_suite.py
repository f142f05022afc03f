"""The standard tests for chat models of langchain-tests, over ChatOpenAI."""

import os

from langchain_core.language_models import BaseChatModel
from langchain_openai import ChatOpenAI
from langchain_tests.integration_tests import ChatModelIntegrationTests


class TestTidegate(ChatModelIntegrationTests):
    """Against the scripted engine: the tests want a model that calls the tool it is given."""

    @property
    def chat_model_class(self) -> type[BaseChatModel]:
        return ChatOpenAI

    @property
    def chat_model_params(self) -> dict[str, object]:
        return {
            "model": os.environ["SCRIPTED_ALIAS"],
            "base_url": os.environ["SCRIPTED_URL"],
            "api_key": "none",
            "max_retries": 0,
            "timeout": 60,
            "stream_usage": True,
        }

    @property
    def supports_model_override(self) -> bool:
        return True

    @property
    def model_override_value(self) -> str:
        return os.environ["SCRIPTED_MODEL"]

    @property
    def supports_json_mode(self) -> bool:
        return True
