# syntax=docker/dockerfile:1
# A service around one explainer. Nothing is fetched but the two base images and Python packages, from the index that
# pip is set to (--build-arg PIP_INDEX_URL=... for one of your own); no system package is installed.
#
#   docker build -t gigrad .
#   docker run --read-only -p 8080:8080 -v "$PWD/explainer.gig:/model/explainer.gig:ro" gigrad

FROM python:3.12-bookworm AS build
ARG PIP_INDEX_URL
WORKDIR /source
COPY pyproject.toml CMakeLists.txt README.md LICENSE NOTICE ./
COPY src ./src
RUN python -m pip wheel --no-cache-dir --wheel-dir /wheels ".[serve]"

FROM python:3.12-slim-bookworm
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    python -m pip install --no-cache-dir --no-index /wheels/*.whl \
    && useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin gigrad
USER 10001
WORKDIR /model
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8080/health/ready', timeout=2)"]
ENTRYPOINT ["gigrad", "serve", "--host", "0.0.0.0"]
CMD ["/model/explainer.gig"]
