"""What holds for every test: commands that are run in this process, or started by it, keep out of the home folder."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("harness")  # so that its assertions say what they compared


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives every item an id of its own. Those made of an API description come under one, and a run in several
    processes would take them for one item."""
    for item in items:
        name = getattr(item, "originalname", None)
        if name is not None and item.name != name and item.nodeid.endswith(f"::{name}"):
            item._nodeid = item.nodeid + item.name.removeprefix(name)
    if len({item.nodeid for item in items}) < len(items):
        raise pytest.UsageError("two tests have one id")


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-home")))
        yield
