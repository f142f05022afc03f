"""What vLLM is started with, whether our program may be imported twice, and what its steps tell."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from tidegate.engine.gauges import EngineGauges
from tidegate.engines.vllm.engine_arguments import TAKEN, UnusableOptions, VllmPlan, engine_arguments
from tidegate.engines.vllm.installed_vllm import InstalledVllm, VllmMissing, check_main
from tidegate.engines.vllm.spawn_guard import unguarded_line
from tidegate.engines.vllm.step_statistics import StepStatistics

PLAN = VllmPlan("m", "t", max_sequences=4)


def test_options_are_passed_through_beside_ours() -> None:
    options = {"tensor_parallel_size": 2, "distributed_executor_backend": "ray", "dtype": "bfloat16"}
    arguments = engine_arguments(replace(PLAN, options=options, max_model_len=100, has_priorities=False))
    assert options.items() <= arguments.items()
    assert arguments["max_model_len"] == 100
    assert arguments["scheduling_policy"] == "fcfs"
    assert "max_model_len" not in engine_arguments(PLAN)


@pytest.mark.parametrize("name", sorted(TAKEN))
def test_what_is_ours_cannot_be_an_option(name: str) -> None:
    with pytest.raises(UnusableOptions, match=name):
        engine_arguments(replace(PLAN, options={name: 1}))


def test_everything_of_ours_is_refused_as_an_option() -> None:
    assert engine_arguments(replace(PLAN, max_model_len=1)).keys() <= TAKEN.keys()


GUARDED = {
    "a program as pip makes it": (
        "import sys\nfrom a import main\nif __name__ == '__main__':\n    sys.argv[0] = 'x'\n    sys.exit(main())\n"
    ),
    "definitions": '"""Doc."""\nX: int = 1\nY = 2\nclass A: ...\ndef f(): print()\nif "__main__" == __name__: f()',
    "an import that may fail": "try:\n    import a\nexcept ImportError:\n    a = None\n",
    "more conditions": "import sys\nif __name__ == '__main__' and sys.argv:\n    main()\n",
    "harmless otherwise": "if __name__ == '__main__':\n    main()\nelse:\n    X = 1\n",
    "no Python": "\x00PK",
    "nothing": "",
}
UNGUARDED = {
    "a call": ("import a\na.main()\n", 2),
    "a loop": ("for i in range(3): pass\n", 1),
    "the other way round": ("if __name__ != '__main__':\n    print(1)\n", 1),
    "another condition": ("import sys\nif sys.argv:\n    main()\n", 2),
    "a call in a try": ("try:\n    main()\nexcept Exception:\n    pass\n", 1),
    "a call where an import failed": ("try:\n    import a\nexcept ImportError:\n    main()\n", 1),
    "a call otherwise": ("if __name__ == '__main__':\n    a()\nelse:\n    b()\n", 1),
    "a call of two ways": ("import sys\nif sys.argv:\n    X = 1\nelse:\n    main()\n", 2),
    "one of two conditions": ("if __name__ == '__main__' or X:\n    main()\n", 1),
    "another name": ("if __name__ == '__mp_main__':\n    main()\n", 1),
}


@pytest.mark.parametrize("source", GUARDED.values(), ids=GUARDED)
def test_a_program_that_does_nothing_when_imported_may_be(source: str) -> None:
    assert unguarded_line(source) is None


@pytest.mark.parametrize("case", UNGUARDED.values(), ids=UNGUARDED)
def test_a_program_that_would_run_again_is_found_by_its_line(case: tuple[str, int]) -> None:
    source, line = case
    assert unguarded_line(source) == line


def test_the_program_that_runs_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", main)
    check_main()  # without a file nothing is imported again
    program = tmp_path / "program.py"
    program.write_text("import os\nos.getpid()\n")
    main.__file__ = str(program)
    with pytest.raises(UnusableOptions, match="line 2"):
        check_main()


def test_without_the_library_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(VllmMissing, match=r"tidegate\[vllm\]"):
        InstalledVllm().configure({})


def test_steps_are_counted_and_blocks_are_the_engines_while_something_runs() -> None:
    statistics = StepStatistics()
    statistics.begin(100)
    statistics.take(SimpleNamespace(kv_cache_usage=0.25), SimpleNamespace(num_preempted_reqs=1, num_prompt_tokens=30))
    statistics.take(None, None)
    statistics.take(None, SimpleNamespace(num_preempted_reqs=2, num_prompt_tokens=5))
    statistics.take(SimpleNamespace(kv_cache_usage=0.25), SimpleNamespace())
    running = statistics.measure(EngineGauges(num_running=1))
    assert (running.blocks_used, running.blocks_free, running.num_steps) == (25, 75, 2)
    assert (running.num_preemptions, running.num_prefill_tokens) == (3, 35)
    at_rest = statistics.measure(EngineGauges())
    assert (at_rest.blocks_used, at_rest.blocks_free) == (0, 100)


@pytest.mark.parametrize("open_as", ["num_waiting", "num_running", "num_held"])
def test_blocks_are_used_while_anything_is_open(open_as: str) -> None:
    statistics = StepStatistics()
    statistics.begin(100)
    statistics.take(SimpleNamespace(kv_cache_usage=0.25), None)
    assert statistics.measure(EngineGauges(**{open_as: 1})).blocks_used == 25


@pytest.mark.parametrize(("usage", "used"), [(1.5, 100), (-0.5, 0)])
def test_no_more_blocks_are_used_than_there_are(usage: float, used: int) -> None:
    statistics = StepStatistics()
    statistics.begin(100)
    statistics.take(SimpleNamespace(kv_cache_usage=usage), None)
    gauges = statistics.measure(EngineGauges(num_running=1))
    assert (gauges.blocks_used, gauges.blocks_free) == (used, 100 - used)


def test_a_new_engine_begins_with_an_empty_cache() -> None:
    statistics = StepStatistics()
    statistics.begin(100)
    statistics.take(SimpleNamespace(kv_cache_usage=0.5), None)
    statistics.begin(200)
    assert statistics.measure(EngineGauges(num_waiting=1)).blocks_used == 0
