"""What holds for every test: commands that are run in this process, or started by it, keep out of the home folder."""

from collections.abc import Iterator

import pytest

pytest.register_assert_rewrite("harness")  # so that its assertions say what they compared


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Gives every item an id of its own. Those made of an API description come under one, and a run in several
    processes would take them for one item."""
    for item in items:
        if not item.nodeid.endswith(f"::{item.name}"):
            item._nodeid = f"{item.nodeid.rpartition('::')[0]}::{item.name}"
    assert len({item.nodeid for item in items}) == len(items)


@pytest.fixture(scope="session", autouse=True)
def _state_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state-home")))
        yield
