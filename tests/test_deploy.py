"""Files to copy from `deploy/`: Slurm, Kubernetes and ssh take them, and they do what they say.

No cluster is at hand: programs that would start the work are stand-ins that note their words.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[1] / "deploy"
SCRIPTS = sorted([*DEPLOY.glob("*.slurm"), *DEPLOY.glob("*.sh")])
#: Options of sbatch that our files use, and what their values look like.
SBATCH = {
    "job-name": r"[\w-]+",
    "nodes": r"\d+(-\d+)?",
    "ntasks": r"\d+",
    "ntasks-per-node": r"\d+",
    "cpus-per-task": r"\d+",
    "mem": r"\d+[KMGT]?",
    "time": r"(\d+-)?\d+:\d\d:\d\d",
    "requeue": None,
    "open-mode": r"append|truncate",
    "signal": r"([BR]:)?(\w+)(@\d+)?",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_shell_can_read_it(script: Path) -> None:
    for shell in ("sh", "bash"):
        if shutil.which(shell):
            subprocess.run([shell, "-n", str(script)], check=True)
    if shutil.which("shellcheck"):
        subprocess.run(["shellcheck", str(script)], check=True)


@pytest.mark.parametrize("script", sorted(DEPLOY.glob("*.slurm")), ids=lambda path: path.name)
def test_slurm_can_read_its_directives(script: Path) -> None:
    lines = script.read_text().splitlines()
    directives = [line for line in lines if line.startswith("#SBATCH")]
    assert directives
    for line in directives:
        match = re.fullmatch(r"#SBATCH --([a-z-]+)(?:=(\S+))?", line)
        assert match is not None, line
        pattern = SBATCH[match[1]]
        assert (match[2] is None) if pattern is None else re.fullmatch(pattern, match[2] or ""), (
            line
        )
    # sbatch stops looking at the first command.
    first_command = next(n for n, line in enumerate(lines) if line and not line.startswith("#"))
    assert max(n for n, line in enumerate(lines) if line.startswith("#SBATCH")) < first_command


def documents() -> Iterator[tuple[str, dict[str, Any]]]:
    for path in sorted(DEPLOY.glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            yield f"{path.name}: {document['kind']}", document


DOCUMENTS = dict(documents())


@pytest.mark.parametrize("name", [name for name in DOCUMENTS if "PyTorchJob" not in name])
def test_kubernetes_takes_it(name: str) -> None:
    check_kubernetes(DOCUMENTS[name])


def check_kubernetes(document: dict[str, Any]) -> None:
    kubernetes = pytest.importorskip("kubernetes_validate")
    kubernetes.validate(document, kubernetes.latest_version(), strict=True)


def test_the_training_operator_takes_it() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    job = DOCUMENTS["train-kubernetes.yaml: PyTorchJob"]
    schema = json.loads((Path(__file__).parent / "schemas" / "pytorchjob.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(job, schema)
    for replica in job["spec"]["pytorchReplicaSpecs"].values():
        template = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "x"}}
        check_kubernetes({**template, "template": replica["template"]})
        # The operator adds its settings to the container of this name.
        assert replica["template"]["spec"]["containers"][0]["name"] == "pytorch"
    broken = {**job, "spec": {**job["spec"], "elasticPolicy": {"maxreplicas": 3}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(broken, schema)


def test_pods_share_all_parts() -> None:
    job = DOCUMENTS["translate-kubernetes.yaml: Job"]["spec"]
    settings = DOCUMENTS["translate-kubernetes.yaml: ConfigMap"]["data"]
    assert job["completions"] == int(settings["PARTS"])
    assert job["completionMode"] == "Indexed"


class Stage:
    """A directory of stand-ins for programs: each writes down how it was called."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.notes = directory / "notes"

    def program(self, name: str, more: str = "") -> None:
        path = self.directory / name
        note = f"printf '%s\\n' \"{name} $*\" >> '{self.notes}'"
        path.write_text(f"#!/bin/sh\n{note}\n{more}\n")
        path.chmod(0o755)

    def run(self, script: str, *words: str, **settings: str) -> list[str]:
        path = f"{self.directory}:{os.environ['PATH']}"
        environment = {**os.environ, "PATH": path, **settings}
        subprocess.run(
            ["sh", str(DEPLOY / script), *words], env=environment, check=True, timeout=60
        )
        return self.notes.read_text().splitlines()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    found = Stage(tmp_path)
    for name in ("bothends", "torchrun", "ray"):
        found.program(name)
    found.program("srun", 'while [ "$1" != torchrun ]; do shift; done; exec "$@"')
    found.program("scontrol", "printf 'node7\\nnode8\\n'")
    found.program("ssh", 'shift $(($# - 1)); [ "$1" != "" ] && exec sh -c "$1"')
    return found


FILES = {"MODEL": "/m odel", "INPUT": "it's.en", "OUTPUT": "out"}


def test_ssh_shares_a_translation_and_merges_last(stage: Stage) -> None:
    words = ("one", "two", "three", "--", "--beam", "1")
    calls = stage.run("translate-ssh.sh", *words, **FILES)
    translations = [call for call in calls if call.startswith("bothends ")]
    plain = "bothends translate it's.en --model /m odel --output out"
    parts = {f"{plain} --shard {part}/3 --beam 1" for part in (1, 2, 3)}
    assert set(translations[:3]) == parts
    assert translations[3].startswith(f"{plain} --workers ")
    assert translations[3].endswith(" --beam 1")
    assert len(translations) == 4


def test_a_machine_that_ssh_does_not_reach_is_no_reason_to_stop(stage: Stage) -> None:
    stage.program("ssh", "exit 255")
    calls = stage.run("translate-ssh.sh", "one", **FILES)
    assert [call.split()[0] for call in calls] == ["ssh", "bothends"]


def test_ssh_starts_a_training_on_all_machines(stage: Stage) -> None:
    calls = stage.run("train-ssh.sh", "one", "two", "--", "recipe.yaml", "order=2x1")
    trainings = [call for call in calls if call.startswith("torchrun")]
    assert len(trainings) == 2
    for call in trainings:
        assert "--nnodes 2" in call
        assert "--rdzv-endpoint one:29400" in call
        assert call.endswith("-m bothends train recipe.yaml order=2x1")


def test_ray_is_stopped_in_the_end(stage: Stage) -> None:
    calls = stage.run("translate-ray.sh", "one", ADDRESS="10.0.0.1:6379", **FILES)
    mine = [call for call in calls if not call.startswith("ssh")]
    assert mine[0] == "ray start --head --port 6379 --include-dashboard false"
    assert mine[1] == "ray start --address 10.0.0.1:6379"
    assert mine[2].endswith("--workers ray:10.0.0.1:6379")
    assert mine[3:] == ["ray stop", "ray stop"]


def test_slurm_starts_torchrun_on_all_hosts(stage: Stage) -> None:
    settings = {"SLURM_JOB_NODELIST": "node[7-8]", "SLURM_JOB_NUM_NODES": "2", "SLURM_JOB_ID": "42"}
    settings |= {"SLURM_CPUS_PER_TASK": "8"}
    calls = stage.run("train.slurm", "recipe.yaml", "order=2x1", **settings)
    (call,) = [call for call in calls if call.startswith("torchrun")]
    assert "--nnodes 2 --nproc-per-node 1" in call
    assert "--rdzv-backend c10d --rdzv-id 42 --rdzv-endpoint node7:29400" in call
    assert call.endswith("-m bothends train recipe.yaml order=2x1")
