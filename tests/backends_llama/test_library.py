import logging
from types import SimpleNamespace

import pytest

from tidegate.backends.llama_cpp.library import LogLines, check_interface, check_version, load_library
from tidegate.sizing.start_error import StartError

DEBUG, INFO, WARN, ERROR, CONTINUES = 1, 2, 3, 4, 5


def test_pieces_of_a_message_become_lines_with_the_level_of_their_first_piece() -> None:
    lines = LogLines()
    assert lines.feed(WARN, b"half ") == []
    assert lines.feed(CONTINUES, b"a line\nand ") == [(logging.WARNING, "half a line")]
    assert lines.feed(CONTINUES, b"the rest\n\n") == [(logging.WARNING, "and the rest")]
    assert lines.feed(ERROR, b"broken \xff\n") == [(logging.ERROR, "broken �")]


def test_what_is_below_the_level_is_dropped_with_its_continuations() -> None:
    lines = LogLines()
    assert lines.feed(INFO, b"loading") == []
    assert lines.feed(CONTINUES, b"....\n") == []
    assert lines.feed(DEBUG, b"x\n") == []
    assert lines.feed(WARN, b"real\n") == [(logging.WARNING, "real")]


@pytest.mark.parametrize("version", ["0.3.36", "0.3.37", "0.4.0", "1.0", "0.3.36+cu124"])
def test_this_version_and_later_ones_are_taken(version: str) -> None:
    check_version(version)


@pytest.mark.parametrize("version", ["0.3.35", "0.2.90", "0.3"])
def test_older_versions_are_refused_with_the_command_to_run(version: str) -> None:
    with pytest.raises(StartError, match=rf"{version} is too old.*pip install"):
        check_version(version)


def test_bindings_that_lack_something_are_refused_by_its_name() -> None:
    with pytest.raises(StartError, match=r"lacks .*llama_decode.*llama_context_params\.n_outputs_max"):
        check_interface(SimpleNamespace(), "9.9.9")


def test_the_library_is_loaded_once_and_names_its_build() -> None:
    library = load_library()
    assert load_library() is library
    assert library.build.startswith(f"llama_cpp {library.version} (")
