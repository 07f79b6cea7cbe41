"""Secret Manager on this machine: its published service over TLS."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import grpc
from google.cloud.secretmanager_v1.types import resources, service

METHOD = "/google.cloud.secretmanager.v1.SecretManagerService/AccessSecretVersion"


@dataclass
class SecretManager:
    """What it knows, who asked, and what is wrong with it."""

    host: str = ""
    secrets: dict[str, bytes] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Version and Authorization header of each question."""
    fault: grpc.StatusCode | None = None
    hang: threading.Event | None = None

    def answer(
        self, request: service.AccessSecretVersionRequest, context: grpc.ServicerContext
    ) -> service.AccessSecretVersionResponse:
        headers = dict(context.invocation_metadata())
        self.asked.append((request.name, str(headers.get("authorization", ""))))
        if self.hang is not None:
            self.hang.wait(20)
        if self.fault is not None:
            context.abort(self.fault, f"so it is with {request.name}")
        if request.name not in self.secrets:
            context.abort(grpc.StatusCode.NOT_FOUND, f"no {request.name}")
        payload = resources.SecretPayload(data=self.secrets[request.name])
        return service.AccessSecretVersionResponse(name=request.name, payload=payload)


@contextmanager
def secret_manager(certificate: bytes, key: bytes) -> Iterator[SecretManager]:
    """The service for as long as the block runs."""
    manager = SecretManager()
    handler = grpc.method_handlers_generic_handler(
        METHOD.split("/")[1],
        {
            METHOD.split("/")[2]: grpc.unary_unary_rpc_method_handler(
                manager.answer,
                request_deserializer=service.AccessSecretVersionRequest.deserialize,
                response_serializer=service.AccessSecretVersionResponse.serialize,
            )
        },
    )
    with ThreadPoolExecutor(4, thread_name_prefix="secret-manager") as pool:
        server = grpc.server(pool)
        server.add_generic_rpc_handlers((handler,))
        port = server.add_secure_port(
            "127.0.0.1:0", grpc.ssl_server_credentials([(key, certificate)])
        )
        server.start()
        manager.host = f"127.0.0.1:{port}"
        try:
            yield manager
        finally:
            if manager.hang is not None:
                manager.hang.set()
            server.stop(0).wait()
