"""The OpenAPI document, and the server against it."""

import pytest

from imprint.inference.openapi import ERRORS

from .conftest import Client, serving


def test_every_route_is_in_the_document(client):
    status, document = client.json("GET", "/openapi.json")
    assert status == 200
    operations = [
        operation
        for methods in document["paths"].values()
        for operation in methods.values()
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(names) == len(set(names)) >= 14
    app = client.service  # a service without a token
    assert app is not None
    assert "securitySchemes" not in document["components"]
    infer = document["paths"]["/v2/models/{name}/infer"]["post"]
    assert infer["parameters"][0]["schema"]["enum"] == ["points", "shades"]
    assert set(infer["responses"]) == {"200", *map(str, (400, 404, 413, 415, 429, 503))}


def test_the_document_states_the_token(model_files):
    with serving(model_files, token="0123456789abcdef") as client:
        document = client.json("GET", "/openapi.json")[1]
    assert document["paths"]["/models"]["get"]["security"] == [{"token": []}]
    assert "security" not in document["paths"]["/v2/health/live"]["get"]
    assert "401" in document["paths"]["/models"]["get"]["responses"]


def test_all_statuses_are_explained():
    assert all(sentence.endswith(".") for sentence in ERRORS.values())


# What a tensor holds cannot be stated completely in JSON Schema: its shape and the number
# of its values must agree, and its width must be that of the model. Such requests are
# valid by the schema, and refused.
NOT_EXPRESSIBLE = {"infer", "infer_version", "predict", "predict_default"}


@pytest.mark.parametrize("number", range(15))
def test_answers_fit_the_document(client: Client, number):
    """Generated requests, valid and invalid, by schemathesis with a fixed seed."""
    schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis")
    from hypothesis import HealthCheck, Phase, given, seed, settings
    from schemathesis.checks import CHECKS, load_all_checks

    load_all_checks()
    url = f"http://127.0.0.1:{client.port}/openapi.json"
    schema = schemathesis.openapi.from_url(url)
    operations = [result.ok() for result in schema.get_all_operations()]
    if number >= len(operations):
        pytest.skip("there are fewer operations")
    operation = operations[number]
    excluded = []
    if operation.definition.raw["operationId"] in NOT_EXPRESSIBLE:
        names = ["positive_data_acceptance", "negative_data_rejection"]
        excluded = CHECKS.get_by_names(names)
    modes = list(schemathesis.GenerationMode)

    for mode in modes:
        strategy = operation.as_strategy(generation_mode=mode)

        @seed(20)
        @settings(
            max_examples=8,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def check(case):
            case.call_and_validate(excluded_checks=excluded)

        try:
            check()
        except Exception as e:
            if "Unsatisfiable" in type(e).__name__ or "Skip" in type(e).__name__:
                continue
            raise
