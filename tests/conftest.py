"""What holds for every test: commands that are run in this process, or started by it, keep out of the home folder; and
no time limit but that of the whole test, as machines are shared."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

settings.register_profile("shared machines", deadline=None)
settings.load_profile("shared machines")
pytest.register_assert_rewrite("harness")  # so that its assertions say what they compared


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-home")))
        yield
