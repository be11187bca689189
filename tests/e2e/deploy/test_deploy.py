"""The container's commands without Docker, the systemd unit, the Kubernetes manifest, the Dockerfile."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import yaml

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from imprint import Imprinter

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "packaging" / "deploy"
DOCKERFILE = (ROOT / "Dockerfile").read_text("utf-8")
NOBODY = 65534


def instruction(name):
    """The last JSON list of an instruction of the Dockerfile."""
    return json.loads(re.findall(rf"{name} (\[.*\])", DOCKERFILE)[-1])


def environment(data, port):
    """The environment of the container, whose /data is a folder here."""
    block = re.search(r"^ENV ((?:.*\\\n)*.*)", DOCKERFILE, re.MULTILINE)[1]
    stated = dict(pair.split("=") for pair in block.replace("\\\n", " ").split())
    assert stated["IMPRINT_PORT"] == "8470"
    inherited = {
        name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ
    }
    values = {name: value.replace("/data", str(data)) for name, value in stated.items()}
    return {
        **inherited,
        **values,
        "HOME": "/nonexistent",
        "IMPRINT_PORT": port,
        "IMPRINT_HOST": "127.0.0.1",
    }


@pytest.fixture
def data():
    """The mounted folder, the only one that the user of the container can write to."""
    folder = Path(tempfile.mkdtemp(prefix="imprint-data-"))
    yield folder
    shutil.rmtree(folder)


@cache
def other_user():
    """The options of a process of another user, who can read but not change this project; none if this user cannot
    become another one, or the other one cannot run this Python.
    """
    user = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    try:
        subprocess.run(
            [sys.executable, "-c", "import imprint"],
            check=True,
            capture_output=True,
            **user,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    return user


def in_container(data, port, *words, start=False):
    """Run a command of the container, as another user if this one may become another."""
    assert words[0] == "imprint" or words[0] == "python"
    call = (
        [sys.executable, "-m", "imprint"] if words[0] == "imprint" else [sys.executable]
    )
    user = other_user()
    if user:
        os.chown(data, NOBODY, NOBODY)
    options = {"cwd": data, "env": environment(data, port), "text": True, **user}
    command = [*call, *words[1:]]
    if not start:
        return subprocess.run(command, capture_output=True, timeout=60, **options)
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )
    line = server.stdout.readline()
    assert line, server.communicate()
    return server, line


def stopped(server):
    """Stop a server as Docker does."""
    server.send_signal(signal.SIGTERM)
    output, errors = server.communicate(timeout=30)
    assert "Traceback" not in errors
    return output


def free_port():
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listening:
        return str(listening.getsockname()[1])


def test_the_page_starts_by_default_and_is_healthy(data):
    port = free_port()
    server, address = in_container(
        data, port, *instruction("ENTRYPOINT"), *instruction("CMD"), start=True
    )
    try:
        assert address.startswith(f"http://localhost:{port}/?token=")
        check = in_container(data, port, *instruction("HEALTHCHECK .* CMD"))
        assert check.returncode == 0, check.stderr
        assert (data / "imprint-project" / "project.sqlite").exists()
    finally:
        stopped(server)
    check = in_container(data, port, *instruction("HEALTHCHECK .* CMD"))
    assert check.returncode == 1
    assert check.stderr == f"No healthy server of imprint answers at port {port}.\n"


def test_an_argument_replaces_no_other_setting(data):
    X = np.random.default_rng(0).normal(size=(20, 3)) + 5 * np.repeat(
        np.eye(2, 3), 10, axis=0
    )
    Imprinter(cache=False).fit((X.astype(np.float32), ["a"] * 10 + ["b"] * 10)).save(
        data / "m.imprint"
    )
    port = free_port()
    words = [
        *instruction("ENTRYPOINT"),
        "api",
        "m.imprint",
        "--no-token",
        "--log",
        "json",
    ]
    server, address = in_container(data, port, *words, start=True)
    try:
        assert address == f"http://127.0.0.1:{port}\n"
        assert (
            in_container(data, port, *instruction("HEALTHCHECK .* CMD")).returncode == 0
        )
    finally:
        stopped(server)
    assert server.returncode == 0


def test_the_image_is_built_for_a_user_without_privileges():
    assert re.search(r"^USER 1000$", DOCKERFILE, re.MULTILINE)
    assert "IMPRINT_HOST=0.0.0.0" in DOCKERFILE
    hadolint = shutil.which(
        "hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    if hadolint is None:
        pytest.skip("needs hadolint")
    subprocess.run([hadolint, str(ROOT / "Dockerfile")], check=True)


def test_systemd_accepts_the_unit():
    if shutil.which("systemd-analyze") is None:
        pytest.skip("needs systemd-analyze")
    unit = DEPLOY / "imprint-api.service"
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
    )
    # other units of this machine may have faults of their own
    assert done.returncode == 0, done.stderr
    assert unit.name not in done.stderr


def manifests():
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text("utf-8")))


def test_the_manifest_has_the_schema_of_kubernetes():
    validate = pytest.importorskip(
        "kubernetes_validate", reason="needs kubernetes-validate"
    )
    for manifest in manifests():
        validate.validate(manifest, "1.31", strict=True)


def test_the_manifest_fits_the_server():
    deployment, service = manifests()
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["ports"][0]["containerPort"] == 8470
    assert service["spec"]["selector"] == deployment["spec"]["selector"]["matchLabels"]
    drain = int(container["args"][container["args"].index("--drain") + 1])
    wait = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert pod["terminationGracePeriodSeconds"] > drain + wait
    assert container["securityContext"]["readOnlyRootFilesystem"]


def test_the_health_check_speaks_tls(data, tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    certificate, key = data / "certificate.pem", data / "key.pem"
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=localhost",
            "-days",
            "2",
            "-out",
            str(certificate),
            "-keyout",
            str(key),
        ],
        check=True,
        capture_output=True,
    )
    key.chmod(0o644)
    port = free_port()
    words = ["imprint", "serve", "--certificate", str(certificate), "--key", str(key)]
    server, address = in_container(data, port, *words, start=True)
    try:
        assert address.startswith("https://localhost:")
        assert (
            in_container(data, port, *instruction("HEALTHCHECK .* CMD")).returncode == 0
        )
    finally:
        stopped(server)
