import pytest

from tidegate.backends.llama_cpp.memory import apply_moves
from tidegate.core.backend import BackendError
from tidegate.core.plan import KvDrop, KvMove, KvShare, KvTruncate
from tidegate.sizing.llama_cpp_options import KvLayout

Call = tuple[str, int, int, int] | tuple[str, int, int, int, int]


class Recorder:
    """Writes down the operations; refuses to cut a part where `can_cut` is False, as recurrent models do."""

    def __init__(self, *, can_cut: bool = True) -> None:
        self.can_cut = can_cut
        self.calls: list[Call] = []

    def seq_cp(self, src: int, dst: int, p0: int, p1: int) -> None:
        self.calls.append(("cp", src, dst, p0, p1))

    def seq_rm(self, seq_id: int, p0: int, p1: int) -> bool:
        self.calls.append(("rm", seq_id, p0, p1))
        return self.can_cut or p0 < 0


MOVES: list[tuple[KvLayout, KvMove, list[Call]]] = [
    ("unified", KvShare(1, 2, 40), [("cp", 1, 2, 0, 40)]),
    ("per_sequence", KvShare(1, 2, 40), [("cp", 1, 2, -1, -1), ("rm", 2, 40, -1)]),
    ("unified", KvShare(1, 2, 0), []),
    ("per_sequence", KvShare(1, 2, 0), []),
    ("unified", KvTruncate(3, 8), [("rm", 3, 8, -1)]),
    ("per_sequence", KvTruncate(3, 8), [("rm", 3, 8, -1)]),
    ("per_sequence", KvTruncate(3, 0), [("rm", 3, -1, -1)]),
    ("unified", KvDrop(3), [("rm", 3, -1, -1)]),
    ("per_sequence", KvDrop(3), [("rm", 3, -1, -1)]),
]


@pytest.mark.parametrize(("layout", "move", "calls"), MOVES)
def test_each_move_in_each_layout(layout: KvLayout, move: KvMove, calls: list[Call]) -> None:
    memory = Recorder()
    apply_moves(memory, [move], layout)
    assert memory.calls == calls


def test_moves_are_carried_out_in_order() -> None:
    memory = Recorder()
    apply_moves(memory, [KvDrop(1), KvShare(0, 1, 5), KvTruncate(0, 5)], "unified")
    assert [call[0] for call in memory.calls] == ["rm", "cp", "rm"]


def test_a_cut_that_the_model_refuses_is_an_error_and_a_drop_is_not() -> None:
    memory = Recorder(can_cut=False)
    apply_moves(memory, [KvDrop(1)], "per_sequence")
    with pytest.raises(BackendError, match="sequence 1 to 5 tokens"):
        apply_moves(memory, [KvTruncate(1, 5)], "per_sequence")
