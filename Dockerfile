# imprint in a container. The page, with its project in the current folder:
#   docker build -t imprint .
#   docker run --rm --read-only --tmpfs /tmp -p 8470:8470 -v "$PWD:/data" imprint
# Predictions for programs, and any other command on files of that folder:
#   docker run --rm --read-only --tmpfs /tmp -p 8470:8470 -v "$PWD:/data:ro" -e IMPRINT_NO_TOKEN=1 imprint api model.imprint
#   docker run --rm --read-only --tmpfs /tmp -v "$PWD:/data" imprint fit photos -o model.imprint
# Add --user "$(id -u):$(id -g)" if the folder is not writable for user 1000. Settings are environment variables, so
# that an argument never replaces another one: IMPRINT_HOST, IMPRINT_PORT, IMPRINT_CERTIFICATE, IMPRINT_KEY,
# IMPRINT_TOKEN_FILE, IMPRINT_NO_TOKEN, IMPRINT_LOG, IMPRINT_FOLDER, IMPRINT_HOME.
FROM python:3.13-slim AS build
WORKDIR /source
COPY . .
RUN python -m pip wheel --no-cache-dir --wheel-dir /wheels ".[serve]"

FROM python:3.13-slim
COPY --from=build /wheels /wheels
# hadolint ignore=DL3013
RUN python -m pip install --no-cache-dir --no-index --find-links /wheels "weight-imprinting[serve]" \
    && rm -rf /wheels \
    && useradd --create-home --uid 1000 imprint \
    && install -d -o imprint -g imprint /data
USER 1000
WORKDIR /data
# A published port reaches only a server that listens on all addresses of the container.
ENV IMPRINT_HOST=0.0.0.0 \
    IMPRINT_PORT=8470 \
    IMPRINT_PUBLIC_NAME=localhost \
    IMPRINT_OPEN=0 \
    IMPRINT_FOLDER=/data/imprint-project \
    IMPRINT_HOME=/data/.imprint \
    MPLCONFIGDIR=/tmp \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1
VOLUME /data
EXPOSE 8470
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-m", "imprint.http.health"]
ENTRYPOINT ["imprint"]
CMD ["serve"]
