"""Serving on a public address requires TLS."""

import shutil
import ssl
import subprocess
import urllib.request

import pytest


@pytest.fixture
def certificate(tmp_path):
    """A self-signed certificate for localhost, and its key."""
    if not shutil.which("openssl"):
        pytest.skip("needs openssl to make a certificate")
    paths = tmp_path / "certificate.pem", tmp_path / "key.pem"
    subject = ("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost")
    options = (
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-out",
        paths[0],
        "-keyout",
        paths[1],
    )
    subprocess.run(
        ("openssl", "req", "-x509", *subject, *options), check=True, capture_output=True
    )
    return paths


def test_every_address_is_served_over_tls_only(serving, certificate):
    files = "--certificate", certificate[0], "--key", certificate[1]
    with serving("--backbone", "raw", "--host", "0.0.0.0", *files) as server:
        assert server.address.startswith("https://")
        assert "0.0.0.0" not in server.address
        trusted = ssl.create_default_context(cafile=certificate[0])
        with urllib.request.urlopen(
            f"https://localhost:{server.port}/api/health", context=trusted
        ) as answer:
            assert answer.status == 200
        with pytest.raises(ConnectionError):
            server.ask("GET", "/api/health")


def test_files_that_are_not_a_certificate_are_refused_in_a_sentence(
    serving, certificate
):
    files = "--certificate", certificate[1], "--key", certificate[1]
    with (
        pytest.raises(AssertionError, match="must be a PEM certificate and its key"),
        serving("--backbone", "raw", "--host", "0.0.0.0", *files),
    ):
        pass


def test_a_certificate_without_its_key_is_refused_in_a_sentence(serving, certificate):
    with (
        pytest.raises(
            AssertionError, match="--certificate and --key are needed together"
        ),
        serving("--backbone", "raw", "--certificate", certificate[0]),
    ):
        pass
