# syntax=docker/dockerfile:1
# The manager's image: its locked run-time packages and ktrainer, compiled, run by a user that is not root.
# Nothing is written at run time, so the root file system can be read-only.
ARG PYTHON_IMAGE=python:3.13.9-slim-bookworm

FROM ${PYTHON_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
# The packages first: this layer changes only when the lock does.
COPY requirements/manager.txt requirements/build.txt requirements/
RUN pip install --require-hashes --only-binary :all: --requirement requirements/build.txt \
    && python -m venv --without-pip /opt/ktrainer \
    && pip --python /opt/ktrainer/bin/python install --require-hashes --only-binary :all: --requirement requirements/manager.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-deps --no-build-isolation --wheel-dir /build/dist . \
    && pip --python /opt/ktrainer/bin/python install --no-deps --no-index /build/dist/*.whl \
    && /opt/ktrainer/bin/python -m compileall -q /opt/ktrainer/lib

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="ktrainer" \
      org.opencontainers.image.description="The control plane of Kubeflow Trainer V2, in Python" \
      org.opencontainers.image.licenses="Apache-2.0"
# The manager needs no package installer.
RUN pip uninstall --yes --quiet --root-user-action=ignore pip
COPY --from=build /opt/ktrainer /opt/ktrainer
ENV PATH=/opt/ktrainer/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["ktrainer"]
CMD ["manager"]
