# strongroom in a container: two stages, nothing that is built for one kind of processor. What is installed is named,
# with its hashes for every platform, in requirements.lock; what the web app is built with, in requirements-dev.lock
# (Node.js) and web/package-lock.json.
FROM python:3.13-slim-bookworm AS build
WORKDIR /build
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python -m venv --without-pip /opt/strongroom \
 && python -m pip --python /opt/strongroom/bin/python install --no-cache-dir --require-hashes --requirement requirements.lock
COPY src src
COPY requirements-dev.lock ./
COPY tools tools
COPY js js
COPY web web
RUN python -m tools.web --strict
RUN python -m pip --python /opt/strongroom/bin/python install --no-cache-dir --no-deps --no-build-isolation . \
 && python -m pip --python /opt/strongroom/bin/python uninstall --yes flit_core \
 && /opt/strongroom/bin/python -m compileall -q /opt/strongroom/lib

FROM python:3.13-slim-bookworm
COPY --from=build /opt/strongroom /opt/strongroom
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin strongroom \
 && install -d -m 0700 -o strongroom -g strongroom /data
ENV PATH=/opt/strongroom/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    HOST=0.0.0.0 \
    PORT=3000 \
    DB_PATH=/data/vault.db
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=4s --start-period=20s --retries=3 CMD ["strongroom", "ready"]
ENTRYPOINT ["strongroom"]
CMD ["serve"]
