# docker build -t lightning_rl . && docker run --rm -v "$PWD/exp_dir:/lightning_rl/exp_dir" lightning_rl train --implementation RCP-A --gamename lunarlander
FROM python:3.11-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends make libegl1 libgl1 \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /lightning_rl
COPY . .
RUN make install
ENV PATH=/lightning_rl/.venv/bin:$PATH
ENTRYPOINT ["lightning-rl"]
CMD ["--help"]
