# The same script as `make setup`, on the interpreter of the image.
FROM python:3.12-slim-bookworm AS build
WORKDIR /opt/voice-gateway
COPY pyproject.toml README.md LICENSE ./
COPY requirements requirements
COPY scripts scripts
COPY gateway gateway
RUN PYTHON=python3 scripts/setup .venv

FROM python:3.12-slim-bookworm
RUN useradd --uid 10001 --user-group --no-create-home gateway
WORKDIR /opt/voice-gateway
COPY --from=build /opt/voice-gateway /opt/voice-gateway
USER 10001:10001
ENV PATH=/opt/voice-gateway/.venv/bin:$PATH PYTHONUNBUFFERED=1 HOME=/tmp
EXPOSE 8080
# Bound to all addresses the gateway wants a proof of who calls: see config/production.yaml.
ENTRYPOINT ["voice-gateway"]
CMD ["serve", "--host", "0.0.0.0"]
