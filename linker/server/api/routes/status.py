"""`/health`, `/ready` and `/metrics`: for operators of the service."""

from prometheus_client import CONTENT_TYPE_PLAIN_0_0_4
from starlette.responses import Response

from linker.server.api.guard import require
from linker.server.api.routes.common import InService, json, problems, routes
from linker.server.errors import ProblemError
from linker.server.fields import Model

router = routes("status")


class Status(Model):
    """The state of the service."""

    status: str


@router.get(
    "/health", response_model=Status, responses=problems(always=(421,)), summary="Whether it is alive"
)
async def health() -> Response:
    """Answer as long as the process is alive; no token is needed."""
    return json({"status": "alive"})


@router.get(
    "/ready", response_model=Status, responses=problems(always=(421, 503)), summary="Whether it is ready"
)
async def ready(service: InService) -> Response:
    """Answer 200 from when all encoders are loaded until the server begins to shut down; no token is needed."""
    if service.draining:
        raise ProblemError(503, "draining: the server is shutting down", "draining", retry=1)
    if service.waiting_for:
        raise ProblemError(503, f"not ready: {service.waiting_for}", "not-ready", retry=1)
    return json({"status": "ready"})


@router.get(
    "/metrics",
    response_class=Response,
    responses={
        200: {"description": "Metrics in the text format of Prometheus.", "content": {"text/plain": {}}},
        **problems(always=(401, 421, 429)),
    },
    summary="Metrics for Prometheus",
    dependencies=[require("read")],
)
async def metrics(service: InService) -> Response:
    """Return requests by route and status, latencies, queue, degraded answers, generations and memory."""
    service.look()
    return Response(service.metrics.text(), media_type=CONTENT_TYPE_PLAIN_0_0_4)
