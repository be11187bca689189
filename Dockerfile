# `imprint serve` in a container, on the loopback address of the host:
#   docker build -t imprint .
#   docker run --rm --read-only --tmpfs /tmp --network host -v imprint-data:/data imprint
# To listen on other addresses, mount TLS files and add: --host 0.0.0.0 --certificate FILE --key FILE
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
ENV IMPRINT_HOME=/data/cache PYTHONDONTWRITEBYTECODE=1
VOLUME /data
EXPOSE 8470
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8470/api/health', timeout=4)"]
ENTRYPOINT ["imprint", "serve"]
CMD ["--folder", "/data/project", "--port", "8470", "--no-open"]
