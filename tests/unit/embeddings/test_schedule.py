"""The scheduler of the Ray engine on a simulated cluster whose nodes fail and return."""

import pytest
from benchmarks.cluster_simulation import simulate


@pytest.mark.parametrize("hours", [0, 1, 0.2])
def test_nothing_is_lost_and_only_batches_of_failed_nodes_are_computed_again(hours):
    """`simulate` asserts that every batch was written once, and computed again only after a failure."""
    result = simulate(nodes=50, batches=3000, hours=hours)
    assert result["lost"] == 0
    assert (result["computed again"] > 0) == (hours > 0)


def test_a_lost_node_does_not_stop_the_others():
    in_order = simulate(nodes=50, batches=3000, hours=0.2, buffer=0)
    buffered = simulate(nodes=50, batches=3000, hours=0.2)
    assert buffered["of the ideal"] > 1.3 * in_order["of the ideal"]


def test_the_number_of_waiting_results_is_bounded():
    result = simulate(nodes=50, batches=3000, hours=0.2, buffer=4)
    assert result["most results waiting"] <= (2 + 4) * 50


def test_many_nodes_get_several_batches_at_once_while_enough_tasks_remain():
    assert simulate(nodes=15, batches=6000, hours=0)["batches in a task"] == 1
    assert simulate(nodes=50, batches=6000, hours=0)["batches in a task"] == 3
    assert simulate(nodes=50, batches=30_000, hours=0)["batches in a task"] == 8
