# The service for exported models and those of the embedded backbone, without torch:
#   docker build -t cptuning .
#   docker run -p 8000:8000 -e CPTUNING_API_KEYS -v "$PWD/models:/models" cptuning
FROM python:3.11-slim AS build
# serve,train for other models
ARG EXTRAS=serve
WORKDIR /source
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/cptuning \
 && /opt/cptuning/bin/pip install --no-cache-dir --constraint constraints.txt ".[$EXTRAS]"

FROM python:3.11-slim
COPY --from=build /opt/cptuning /opt/cptuning
ENV PATH=/opt/cptuning/bin:$PATH PYTHONUNBUFFERED=1 HF_HUB_OFFLINE=1
RUN useradd --no-log-init --uid 10001 --no-create-home --shell /usr/sbin/nologin cptuning
USER 10001
VOLUME /models
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s CMD \
  ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/ready', timeout=4)"]
# It refuses to start without CPTUNING_API_KEYS: from outside a container all can reach it.
ENTRYPOINT ["cptuning", "serve", "--host", "0.0.0.0"]
CMD ["/models"]
