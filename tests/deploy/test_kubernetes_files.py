"""The manifests: valid for Kubernetes, and true to the settings, routes and metrics of the server that they run."""

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Any

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from harness.deployments import DEPLOY, deployed, documents, settings_in
from tidegate import __version__
from tidegate.cli.main import cli
from tidegate.cli.service_manager import END_MARGIN_S
from tidegate.cli.settings import Settings
from tidegate.http.public_routes import routes_behind_keys
from tidegate.http.routes_admin import METRICS_PATH, OPEN_ADMIN_PATHS
from tidegate.observability.catalog import CATALOG

FOLDER = "kubernetes"
EXTRA = {"autoscaler.yaml", "monitor.yaml", "secrets.example.yaml"}
FOREIGN = {"Kustomization", "ServiceMonitor"}
"""Kinds that Kubernetes itself does not have."""
NUM_SPARE_MIB = 64


def names() -> list[str]:
    return sorted(file.name for file in (DEPLOY / FOLDER).glob("*.yaml"))


def manifests() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in names():
        for one in documents(f"{FOLDER}/{name}"):
            yield name, one


def the(kind: str, name: str = "tidegate") -> dict[str, Any]:
    (found,) = [one for _, one in manifests() if one["kind"] == kind and one["metadata"].get("name") == name]
    return found


def pod() -> dict[str, Any]:
    spec: dict[str, Any] = the("Deployment")["spec"]["template"]["spec"]
    return spec


def container() -> dict[str, Any]:
    (found,) = pod()["containers"]
    return dict(found)


@pytest.fixture(scope="module")
def settings() -> Settings:
    environment = {one["name"]: one["value"] for one in container()["env"] if one["name"].startswith("TIDEGATE_")}
    return settings_in(f"{FOLDER}/tidegate.toml", environment)


def mounts() -> dict[str, dict[str, Any]]:
    return {mount["mountPath"]: mount for mount in container()["volumeMounts"]}


def mount_of(path: str) -> dict[str, Any]:
    """The mount under which a file lies."""
    return next(mounts()[str(folder)] for folder in PurePosixPath(path).parents if str(folder) in mounts())


@pytest.mark.parametrize("name", names())
def test_every_manifest_is_one_of_kubernetes(name: str) -> None:
    for one in documents(f"{FOLDER}/{name}"):
        if one["kind"] not in FOREIGN:
            kubernetes_validate.validate(one, kubernetes_validate.latest_version(), strict=True)


def test_all_files_are_applied_or_named_as_extra() -> None:
    (kustomization,) = documents(f"{FOLDER}/kustomization.yaml")
    assert {*kustomization["resources"], *EXTRA, "kustomization.yaml"} == set(names())
    (generated,) = kustomization["configMapGenerator"]
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    assert volumes["settings"]["configMap"]["name"] == generated["name"]
    assert all((DEPLOY / FOLDER / file).is_file() for file in generated["files"])
    assert [one["newTag"] for one in kustomization["images"] if one["name"] == container()["image"]] == [__version__]
    assert kustomization["namespace"] == the("Namespace")["metadata"]["name"]


def test_the_arguments_are_ones_of_the_command_line() -> None:
    command, option, file = container()["args"]
    assert (command, option) == ("serve", "--config")
    assert PurePosixPath(file).parent == PurePosixPath(mounts()["/etc/tidegate/settings"]["mountPath"])
    shown = CliRunner().invoke(cli, ["config", option, str(DEPLOY / FOLDER / PurePosixPath(file).name)])
    assert shown.exit_code == 0, shown.output
    assert "idempotency.store" in shown.output


def test_running_requests_have_all_of_their_time_before_the_pod_is_killed(settings: Settings) -> None:
    before_s = container()["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert pod()["terminationGracePeriodSeconds"] >= before_s + settings.server.drain_timeout_s + END_MARGIN_S
    ready = container()["readinessProbe"]
    assert before_s >= 2 * ready["periodSeconds"], "new requests stop coming before the server refuses them"


def test_ports_and_probes_are_those_of_the_server(settings: Settings) -> None:
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    assert ports == {"http": settings.server.port, "admin": settings.server.admin_port}
    defaults = Settings().server
    assert ports == {"http": defaults.port, "admin": defaults.admin_port}
    for name in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = container()[name]["httpGet"]
        assert asked["port"] == "admin"
        assert asked["path"].encode() in OPEN_ADMIN_PATHS
    assert container()["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container()["livenessProbe"]["httpGet"]["path"] == "/healthz", "an engine that is restarted ends no pod"


def test_services_lead_to_ports_of_the_pods() -> None:
    labels = the("Deployment")["spec"]["template"]["metadata"]["labels"]
    assert the("Deployment")["spec"]["selector"]["matchLabels"] == labels
    for name in ("tidegate", "tidegate-admin"):
        service = the("Service", name)
        assert service["spec"]["selector"] == labels
        assert {port["targetPort"] for port in service["spec"]["ports"]} <= {
            one["name"] for one in container()["ports"]
        }
    assert {port["name"] for port in the("Service")["spec"]["ports"]} == {"http"}
    assert the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels


def test_the_admin_port_is_for_prometheus_alone() -> None:
    policy = the("NetworkPolicy")["spec"]
    assert policy["podSelector"]["matchLabels"] == the("Deployment")["spec"]["template"]["metadata"]["labels"]
    open_to_all = [rule for rule in policy["ingress"] if "from" not in rule]
    assert [[port["port"] for port in rule["ports"]] for rule in open_to_all] == [["http"]]
    (source,) = [source for rule in policy["ingress"] for source in rule.get("from", [])]
    assert source == {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    assert "namespace `monitoring`" in (DEPLOY.parent / "docs" / "deploy.md").read_text(), "as the page says"
    (endpoint,) = the("ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["path"].encode() == METRICS_PATH
    assert METRICS_PATH.decode() not in routes_behind_keys()


def test_redis_is_for_the_servers_alone_and_connects_to_nobody() -> None:
    policy = the("NetworkPolicy", "tidegate-redis")["spec"]
    (source,) = policy["ingress"][0]["from"]
    assert source == {"podSelector": {"matchLabels": the("Deployment")["spec"]["selector"]["matchLabels"]}}
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert "egress" not in policy


def test_a_disruption_leaves_a_server() -> None:
    assert the("PodDisruptionBudget")["spec"]["maxUnavailable"] < the("Deployment")["spec"]["replicas"]
    assert the("PodDisruptionBudget")["spec"]["selector"] == the("Deployment")["spec"]["selector"]


def test_whatever_the_settings_name_is_mounted(settings: Settings) -> None:
    assert settings.auth.keys_file is not None
    assert settings.auth.admin_token_file is not None
    assert settings.model.source is not None
    for path in (settings.auth.keys_file, settings.auth.admin_token_file, settings.model.source):
        assert mount_of(path)["readOnly"]
    assert settings.server.state_dir is not None
    writable = {path for path, mount in mounts().items() if not mount.get("readOnly")}
    assert writable == {settings.server.state_dir, "/tmp"}
    assert {mount["name"] for mount in mounts().values()} == {volume["name"] for volume in pod()["volumes"]}


def test_secrets_are_the_ones_of_the_example(settings: Settings) -> None:
    example = {
        one["metadata"]["name"]: {*one.get("data", {}), *one.get("stringData", {})}
        for one in documents(f"{FOLDER}/secrets.example.yaml")
    }
    used: dict[str, set[str]] = {}
    for holder in (container(), the("StatefulSet", "tidegate-redis")["spec"]["template"]["spec"]["containers"][0]):
        for one in holder["env"]:
            if "valueFrom" in one:
                reference = one["valueFrom"]["secretKeyRef"]
                used.setdefault(reference["name"], set()).add(reference["key"])
    paths = [path for path in (settings.auth.keys_file, settings.auth.admin_token_file) if path is not None]
    for path in paths:
        volume = next(one for one in pod()["volumes"] if one["name"] == mount_of(path)["name"])
        assert volume["secret"]["defaultMode"] == 0o440
        used.setdefault(volume["secret"]["secretName"], set()).add(PurePosixPath(path).name)
    assert used == example


def test_settings_suit_the_resources(settings: Settings) -> None:
    asked = container()["resources"]
    assert settings.engine.threads == int(asked["requests"]["cpu"])
    assert asked["requests"]["memory"] == asked["limits"]["memory"], "nothing else can push it out of memory"
    redis = the("StatefulSet", "tidegate-redis")["spec"]["template"]["spec"]["containers"][0]
    most_mib = int(redis["args"][redis["args"].index("--maxmemory") + 1].removesuffix("gb")) * 1024
    ledger_mib = settings.idempotency.max_bytes // 1024**2
    assert (
        ledger_mib + NUM_SPARE_MIB <= most_mib < int(redis["resources"]["limits"]["memory"].removesuffix("Gi")) * 1024
    )


def test_the_ledger_of_all_servers_is_the_redis_beside_them(settings: Settings) -> None:
    assert settings.idempotency.store == "redis"
    service = the("Service", "tidegate-redis")
    (port,) = service["spec"]["ports"]
    assert settings.idempotency.redis_url is not None
    assert settings.idempotency.redis_url.endswith(f"@{service['metadata']['name']}:{port['port']}/0")
    assert "$(REDIS_PASSWORD)" in settings.idempotency.redis_url
    order = [one["name"] for one in container()["env"]]
    assert order.index("REDIS_PASSWORD") < order.index("TIDEGATE_IDEMPOTENCY__REDIS_URL"), "expanded in this order"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_pods_have_no_rights_that_they_do_not_need(kind: str) -> None:
    spec = the(kind, "tidegate" if kind == "Deployment" else "tidegate-redis")["spec"]["template"]["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for one in spec["containers"]:
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


def test_the_autoscaler_looks_at_a_metric_that_there_is() -> None:
    (metric,) = the("HorizontalPodAutoscaler")["spec"]["metrics"]
    name = metric["pods"]["metric"]["name"]
    assert name in {one.sample_name for one in CATALOG}
    scaled = the("HorizontalPodAutoscaler")["spec"]
    assert scaled["scaleTargetRef"]["name"] == the("Deployment")["metadata"]["name"]
    assert scaled["minReplicas"] >= the("Deployment")["spec"]["replicas"]


def test_no_example_holds_a_secret_of_anybody() -> None:
    example = yaml.safe_load_all(deployed(f"{FOLDER}/secrets.example.yaml"))
    values = [value for one in example for value in {**one.get("data", {}), **one.get("stringData", {})}.values()]
    assert len({*values} & {"", "0" * 64, "letters-and-digits-only-it-stands-in-a-url"}) == len(values)
