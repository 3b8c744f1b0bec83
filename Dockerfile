# The service with BM25, FAISS, ONNX Runtime, rankers and the page, without torch: docs/deploying.md.
#   docker build -t linker .
ARG PYTHON=3.13

FROM python:${PYTHON}-bookworm AS build
ENV UV_LINK_MODE=copy
WORKDIR /src
COPY requirements/bootstrap.txt requirements/build.txt requirements/serve.txt requirements/
RUN python -m venv /opt/uv && /opt/uv/bin/python -m pip install -q --require-hashes -r requirements/bootstrap.txt
RUN python -m venv --without-pip /opt/linker \
    && VIRTUAL_ENV=/opt/linker /opt/uv/bin/uv pip install -q --require-hashes -r requirements/serve.txt
COPY pyproject.toml setup.cfg setup.py README.md LICENSE ./
COPY indexes indexes
COPY linker linker
RUN /opt/uv/bin/uv build -q --wheel --require-hashes --build-constraints requirements/build.txt --python /opt/linker/bin/python -o /wheels \
    && VIRTUAL_ENV=/opt/linker /opt/uv/bin/uv pip install -q --no-deps /wheels/*.whl
# LightGBM takes OpenMP from the system, which the slim image lacks. The packages' own tests are not needed, nor the formats
# of languages that the page does not have.
RUN mkdir /opt/linker/libraries && cp -L "$(gcc -print-file-name=libgomp.so.1)" /opt/linker/libraries/ \
    && find /opt/linker -depth -type d -name tests -exec rm -r {} + \
    && find /opt/linker -path '*/babel/locale-data/*.dat' ! -name 'root.dat' ! -name 'de*' ! -name 'en*' ! -name 'es*' ! -name 'fr*' -delete

FROM python:${PYTHON}-slim-bookworm
RUN useradd --uid 10001 --user-group --no-log-init --shell /usr/sbin/nologin --home-dir /data --no-create-home linker \
    && install -d -o linker -g linker -m 700 /data
COPY --from=build /opt/linker /opt/linker
ENV PATH=/opt/linker/bin:$PATH LD_LIBRARY_PATH=/opt/linker/libraries HOME=/tmp PYTHONUNBUFFERED=1
# Fails where a library is missing, and leaves the bytecode of what the service loads: nothing can be written later.
RUN python -c "import faiss, lightgbm, onnxruntime, elasticsearch, linker.server.running, linker.server.api.app, linker.review.learning.model as m; m.load()"
ENV PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/health', timeout=4)"]
ENTRYPOINT ["linker"]
CMD ["serve", "/data", "--api", "--host", "0.0.0.0", "--token-file", "/data/.tokens"]
