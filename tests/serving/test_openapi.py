"""The service against its own OpenAPI document, with requests that schemathesis makes up."""

import shutil

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

EXAMPLES = 10


@pytest.fixture(scope="module")
def operations(start_session, folders, tmp_path_factory):
    """What can be asked of a server, by method and path."""
    copy = shutil.copytree(folders / "films", tmp_path_factory.mktemp("open") / "films")
    document = schemathesis.openapi.from_url(f"{start_session(copy).url}/openapi.json")
    found = [result.ok() for result in document.get_all_operations()]
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


WITH_BODY = [
    f"POST {prefix}/{what}"
    for prefix in ("", "/models/{name}")
    for what in ("predict", "embed", "examples")
]
OPERATIONS = [
    *("GET /health", "GET /ready", "GET /metrics", "GET /models", "GET /models/{name}"),
    *("POST /models/{name}/reload", *WITH_BODY),
]


def test_every_operation_is_tried(operations):
    assert sorted(operations) == sorted(OPERATIONS)


def check(operation, mode):
    """Ask what schemathesis makes up, and compare the answers with the document."""
    # That there are as many labels as texts can't be written in a schema.
    unsaid = [positive_data_acceptance] if operation.path.endswith("/examples") else []

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    def ask(case):
        case.call_and_validate(excluded_checks=unsaid)

    ask()


@pytest.mark.parametrize("name", OPERATIONS)
def test_what_the_document_allows_is_answered_as_it_says(operations, name):
    check(operations[name], GenerationMode.POSITIVE)


@pytest.mark.parametrize("name", WITH_BODY)
def test_what_the_document_forbids_is_refused_as_it_says(operations, name):
    check(operations[name], GenerationMode.NEGATIVE)
