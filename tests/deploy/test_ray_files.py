"""The files for Ray: what Ray's own schemas say of them, and that they are true to the application."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from harness.deployments import DEPLOY, deployed, documents, settings_in
from tidegate.cli.settings_sources import resolve
from tidegate.serve_app.arguments import read_arguments
from tidegate.serve_app.patience import Patience
from tidegate.serve_app.proxy_guard import IMPORT_PATH, OBEYED

JUDGE = """
import json, sys, yaml
from ray.autoscaler._private.util import prepare_config, validate_config
from ray.serve._private import constants
from ray.serve.schema import ServeDeploySchema
from tidegate.serve_app import application
folder = sys.argv[1]
cluster = prepare_config(yaml.safe_load(open(folder + "/cluster.yaml")))
validate_config(cluster)
serve = ServeDeploySchema.model_validate(yaml.safe_load(open(folder + "/serve.yaml")))
(app,) = serve.applications
module, _, name = app.import_path.partition(":")
made = application.TidegateReplica
print(json.dumps({
    "builder": [module == application.__name__, callable(getattr(application, name))],
    "name": made.name, "max_ongoing_requests": made.max_ongoing_requests,
    "obeyed": [constants.SERVE_HTTP_REQUEST_TIMEOUT_S_HEADER, constants.SERVE_HTTP_REQUEST_DISCONNECT_DISABLED_HEADER],
    "max_workers": cluster["max_workers"], "num_workers": len(cluster["provider"]["worker_ips"]),
}))
"""


@pytest.fixture(scope="module")
def judged() -> dict[str, Any]:
    """What Ray makes of the files, in a process of its own: Ray's warnings are not ours."""
    source = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", JUDGE, str(DEPLOY / "ray")],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        env={**os.environ, "PYTHONPATH": source},
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def application() -> dict[str, Any]:
    (found,) = documents("ray/serve.yaml")[0]["applications"]
    return dict(found)


def deployment() -> dict[str, Any]:
    (found,) = application()["deployments"]
    return dict(found)


def test_ray_takes_both_files_and_finds_the_application(judged: dict[str, Any]) -> None:
    assert judged["builder"] == [True, True]
    assert judged["name"] == deployment()["name"]
    assert judged["max_ongoing_requests"] == deployment()["max_ongoing_requests"]
    assert judged["max_workers"] == judged["num_workers"]


def test_the_guard_knows_the_headers_that_this_ray_obeys(judged: dict[str, Any]) -> None:
    assert {name.encode() for name in judged["obeyed"]} == OBEYED


def test_the_arguments_are_ones_of_the_application(tmp_path: Path) -> None:
    given = application()["args"]
    assert given["config_file"] in deployed("ray/tidegate.toml").splitlines()[0]
    changed = {**given, "config_file": str(DEPLOY / "ray" / "tidegate.toml")}
    settings, warnings = read_arguments(
        changed, {"TIDEGATE_SERVER__STATE_DIR": str(tmp_path), "TIDEGATE_AUTH__NO_AUTH": "true"}
    )
    assert settings.engine.max_sequences == given["settings"]["engine"]["max_sequences"]
    assert not [words for words in warnings if "no effect" in words]
    Patience().reconfigure(deployment()["user_config"])


def test_every_request_ends_by_itself_before_serve_cuts_it_off() -> None:
    settings = settings_in("ray/tidegate.toml")
    assert settings.deadlines.max_ms is not None
    spare_s = deployment()["graceful_shutdown_timeout_s"] - settings.deadlines.max_ms / 1000
    assert spare_s >= settings.server.slow_client_timeout_s


def test_replicas_are_made_before_requests_have_to_wait() -> None:
    max_sequences = application()["args"]["settings"]["engine"]["max_sequences"]
    assert 0 < deployment()["autoscaling_config"]["target_ongoing_requests"] < max_sequences
    assert deployment()["max_queued_requests"] == -1, "refusals are the server's"


def test_replicas_share_their_ledger() -> None:
    settings = settings_in("ray/tidegate.toml")
    assert deployment()["autoscaling_config"]["max_replicas"] > 1
    assert settings.idempotency.store == "redis"


@pytest.mark.parametrize("key", ["head_start_ray_commands", "worker_start_ray_commands"])
def test_every_node_starts_with_the_guard_and_with_haproxy(key: str) -> None:
    start = documents("ray/cluster.yaml")[0][key][-1]
    variables = dict(re.findall(r"(\w+)=(\S+)", start))
    assert variables["RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH"] == IMPORT_PATH
    assert variables["RAY_SERVE_ENABLE_HA_PROXY"] == "1"
    module, _, name = IMPORT_PATH.rpartition(".")
    assert callable(getattr(sys.modules[module], name))


def test_the_extra_that_the_files_name_exists() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())["project"]
    named = re.search(r"tidegate\[([\w,-]+)\]", deployed("ray/cluster.yaml"))
    assert named is not None
    assert set(named[1].split(",")) <= set(project["optional-dependencies"])
    assert settings_in("ray/tidegate.toml").idempotency.store in named[1].split(","), "what the settings need is there"


def test_nothing_else_is_said_of_the_settings_than_they_know() -> None:
    flags = {
        f"{section}.{key}": value
        for section, values in application()["args"]["settings"].items()
        for key, value in values.items()
    }
    assert resolve(None, {}, flags, is_file_required=False).settings
