"""Requests on one connection are as fast as the first one."""

import http.client
import statistics
import time

import pytest

pytest.importorskip("starlette")

from .conftest import serving

# With Nagle's algorithm, every answer after the first waits for a delayed
# acknowledgement, which takes at least 40 ms on Linux. An answer takes 1 to 2 ms.
MAX_SECONDS = 0.02


def test_ten_requests_on_one_connection_wait_for_no_acknowledgement(project):
    with serving(project) as port:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        seconds = []
        for _ in range(10):
            start = time.perf_counter()
            connection.request("GET", "/api/health")
            assert connection.getresponse().read()
            seconds.append(time.perf_counter() - start)
        connection.close()
    assert statistics.median(seconds[1:]) < MAX_SECONDS
