"""`python -m imprint.http.health`: exit code 0 if a server of imprint answers on this
machine.

Containers and service managers call it. It asks `imprint serve` and `imprint api`, with
and without TLS, at the port IMPRINT_PORT.
"""

import os
import ssl
import sys
import urllib.request
from http.client import HTTPException

DEFAULT_PORT = "8470"
SECONDS = 4.0  # less than the time that a health check of Docker has by default
PATHS = ("/v2/health/ready", "/api/health")


def answers(port: str) -> bool:
    """Whether a server on this machine answers at a port, and is healthy."""
    # the name in the certificate is that for other machines
    unverified = ssl.create_default_context()
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    for scheme in ("https", "http"):
        for path in PATHS:
            address = f"{scheme}://127.0.0.1:{port}{path}"
            try:
                with urllib.request.urlopen(
                    address, timeout=SECONDS, context=unverified
                ) as answer:
                    if answer.status == 200:
                        return True
            except (OSError, HTTPException):
                continue
    return False


def main() -> int:
    """The exit code of the check."""
    port = os.environ.get("IMPRINT_PORT", DEFAULT_PORT)
    if answers(port):
        return 0
    sys.stderr.write(f"No healthy server of imprint answers at port {port}.\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
