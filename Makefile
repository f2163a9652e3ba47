# What this project can do: `make` lists it. Each target installs what it needs into .venv and says so.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ADDRESS ?=
SPEECH ?=
MODELS ?=
# Python compiles a package when it is first imported: to compile all that is installed would take as long as installing it.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# The pins name everything, so pip has nothing to resolve.
PINNED := $(INSTALL) --require-hashes --no-deps
PYTEST := $(BIN)/python -m pytest -q
SERVICES := $(BIN)/python -m tests.services --
# The files that name a marker: to collect all others takes longer than some of these tests.
marked = $$(grep -rlE "mark\.($(1))\b" --include="test_*.py" tests)
# Python keeps what it compiled, whatever the environment says: every program that is started would compile it all again.
export PYTHONDONTWRITEBYTECODE :=
# Everything but pip itself, which other steps use while it would be replaced.
PINS := --quiet --upgrade --strip-extras --no-emit-index-url --no-emit-find-links --generate-hashes --unsafe-package pip
# What not every machine can have, each with a file of pins of its own, so that one that fails stops nothing else. The
# order matters: what follows keeps to what was pinned before.
PARTS := world torch whisper moonshine kokoro sentry
# The wheels of torch for Linux on the public index bring gigabytes of CUDA; here are those for the processor alone.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu

# What runs beside other tests says all of its lines at its end.
at_end = log=$$(mktemp); { $(1); } > $$log 2>&1; code=$$?; cat $$log; rm $$log; exit $$code

.DEFAULT_GOAL := help
.PHONY: help demo run test golden pictures test-embedded test-browser test-others test-slow test-random lint audit bench models clean requirements programs

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# exec: Ctrl-C then reaches the portal itself, which ends in order, and make has nothing to say about it.
# The demo listens to the whole network, so that a phone can be the evaluator; ADDRESS=127.0.0.1:8000 keeps it here.
demo: $(BIN)/vp ## run a challenge on the demo corpus (or SPEECH=<folder with a manifest>) and open the portal
	@echo "Starting the portal with $(if $(SPEECH),the speech in $(SPEECH),its demo corpus)"
	@exec env PORTAL_ADDRESS="$(or $(ADDRESS),$(PORTAL_ADDRESS),0.0.0.0:8000)" $(BIN)/python manage.py demo $(if $(SPEECH),--speech "$(SPEECH)") $(if $(filter no,$(MODELS)),--without-models)

run: $(BIN)/vp ## start the portal: web server, worker and scheduler
	@echo "Starting the portal"
	@exec env PORTAL_ADDRESS="$(or $(ADDRESS),$(PORTAL_ADDRESS),127.0.0.1:8000)" $(BIN)/python manage.py serve

# Steps that wait for the network, or use one core only, run in parallel.
test: ## run the tests
	@$(MAKE) --no-print-directory --jobs 4 $(VENV)/dev $(VENV)/models programs
	@$(MAKE) --no-print-directory --jobs 2 $(VENV)/compiled $(VENV)/loops
	@$(MAKE) --no-print-directory --jobs 3 test-embedded test-browser test-others

# What is installed is compiled once, by one process, and not by all those that run tests: modules, and the loops of
# anonymisers.
$(VENV)/compiled: $(VENV)/dev
	@$(PYTEST) --collect-only tests > /dev/null 2>&1 || true
	@touch $@
$(VENV)/loops: $(VENV)/dev
	@$(PYTEST) tests/anonymization/methods/test_every_method.py -k keeps_the_contract > /dev/null 2>&1 || true
	@touch $@

# They give way to the tests beside them, which wait for something now and then.
test-embedded: $(VENV)/dev $(VENV)/models programs
	@echo "Running the tests on SQLite and the folder queue"
	@nice -n 5 $(PYTEST) -n 2 --dist worksteal -m "not (slow or browser or processes)" tests

# One browser in one process: it compiles the scripts of the pages once, and what passed axe once has passed.
test-browser: $(VENV)/dev $(VENV)/models programs
	@echo "Running beside them the tests in a browser"
	@$(call at_end,$(PYTEST) -m "browser and not (slow or processes)" tests/*/browser)

test-others: $(VENV)/dev $(VENV)/models programs
	@echo "Running beside them the tests with processes of their own, then those on PostgreSQL and Redis"
	@$(call at_end,$(PYTEST) -n 3 --dist worksteal -m "processes and not slow" tests/*/processes $(call marked,processes) \
		&& $(SERVICES) $(PYTEST) -n 2 --dist worksteal -m "(postgres or redis) and not slow" $(call marked,postgres|redis))

test-slow: $(VENV)/dev $(VENV)/models programs ## run what is too slow for make test or reads ../shared, and on PostgreSQL all tests of the portal (two to three hours)
	@$(PYTEST) -n 2 -m "slow and not processes" tests
	@$(PYTEST) -n 2 -m "slow and processes" tests
	@TEST_LOOKS=all SLOW_ANSWERS=1 $(PYTEST) -n 2 -m "browser and not processes" tests/*/browser
	@TEST_LOOKS=all SLOW_ANSWERS=1 $(PYTEST) -n 2 -m "browser and processes" tests/*/browser
	@$(SERVICES) $(PYTEST) -n 2 -m "not (browser or processes)" tests/portal tests/listening
	@$(SERVICES) $(PYTEST) -m "processes and not browser" tests/*/processes

test-random: $(VENV)/dev $(VENV)/models ## let the property tests explore; what they find becomes an example of the test
	@TEST_PROPERTIES=random $(PYTEST) -n 2 -m hypothesis tests

golden: $(VENV)/dev ## compare what the demo shows with what is frozen in tests/golden
	@$(BIN)/python -m tests.golden.demo compare

pictures: $(VENV)/dev programs ## take the pictures of the manual and of README anew, from the demo
	@$(BIN)/python -m tests.pictures

lint: $(VENV)/dev ## check style, types, import contracts and migrations
	@echo "Checking style, types, import contracts and migrations"
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@if $(BIN)/python -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"; then $(BIN)/mypy; \
		else echo "torch is not installed here, and the types of what uses it are unknown: mypy does not run."; fi
	@$(BIN)/lint-imports
	@PORTAL_DATA_DIR=$$(mktemp -d) $(BIN)/python manage.py makemigrations --check --dry-run

# In an environment of its own: what it needs is no part of the portal, and no test waits for it.
audit: $(VENV)/bin/python ## look the pinned packages up among known vulnerabilities, where that list can be reached
	@test -x $(VENV)/audit/bin/pip-audit || { $(BIN)/python -m venv $(VENV)/audit && $(VENV)/audit/bin/python -m pip install \
		--quiet --disable-pip-version-check --no-compile --retries 1 pip-audit==2.10.1; } 2>/dev/null || true
	@$(BIN)/python .ci/audit.py $(VENV)/audit/bin/pip-audit requirements.txt requirements-dev.txt $(PARTS:%=requirements/%.txt)

bench: $(VENV)/dev ## measure speed as ratios to a yardstick in the same run
	@echo "Measuring speed; this takes some minutes"
	@$(BIN)/python -m benchmarks

models: $(VENV)/portal $(VENV)/models ## fetch the models of attackers, recognisers, synthesiser, vocoder (about 470 MB)
	@$(BIN)/python -m portal.client models

clean: ## remove the virtual environment and caches; the portal's data in var/ stays
	@echo "Removing $(VENV) and caches; the portal's data in var/ stays"
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

requirements: ## pin the newest versions that pyproject.toml allows
	@echo "Pinning the newest versions in requirements.txt, requirements/ and requirements-dev.txt"
	@$(BIN)/pip-compile $(PINS) --output-file requirements.txt pyproject.toml
	@for part in $(PARTS); do $(BIN)/python .ci/pins.py $$part | $(BIN)/pip-compile $(PINS) \
		--constraint requirements.txt $$(test $$part = world || echo --constraint requirements/world.txt) \
		--extra-index-url $(TORCH_INDEX) --output-file requirements/$$part.txt - || exit 1; done
	@$(BIN)/python .ci/pins.py --hashes requirements/torch.txt torch $(TORCH_INDEX) https://pypi.org/simple
	@$(BIN)/pip-compile $(PINS) --extra dev --constraint requirements.txt --constraint requirements/world.txt \
		--output-file requirements-dev.txt pyproject.toml

programs:
	@sh tests/install_chromium.sh
	@sh tests/install_bubblewrap.sh
	@sh tests/install_nginx.sh $(VENV)/nginx

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "The portal needs Python 3.11 or newer; name one with make PYTHON=python3.12 …")'
	@echo "Making the virtual environment in $(VENV)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/base: $(VENV)/bin/python requirements.txt
	@echo "Installing the portal's packages (about 700 MB) into $(VENV)"
	@$(PINNED) --requirement requirements.txt
	@$(BIN)/python -m portal.client models fetch wespeaker-resnet34 || echo "The portal runs without its attacker's model."
	@touch $@

# pyworld comes as source. It is built beside the installation of the other packages, and pip keeps what it built.
$(VENV)/world: $(VENV)/bin/python requirements/world.txt
	@$(BIN)/python -m pip wheel --quiet --require-hashes --no-deps --requirement requirements/world.txt --wheel-dir $@ 2>/dev/null || true
	@mkdir -p $@ && touch $@

# What cannot be installed here is named; the portal says so again where it is asked for, and its tests are skipped.
$(VENV)/portal: $(VENV)/base $(VENV)/world $(PARTS:%=requirements/%.txt)
	@echo "Installing WORLD, PyTorch, recognisers and synthesiser (about 1.2 GB)"
	@$(PINNED) --requirement requirements/world.txt 2>/dev/null \
		|| echo "pyworld could not be built (it needs a C++ compiler): formant scaling and the F0 estimators DIO and Harvest will not run."
	@$(PINNED) --extra-index-url $(TORCH_INDEX) --retries 1 --requirement requirements/torch.txt 2>/dev/null \
		|| $(INSTALL) --extra-index-url $(TORCH_INDEX) $$($(BIN)/python .ci/pins.py --versions requirements/torch.txt | sed 's/torch==[0-9.]*/&+cpu/') 2>/dev/null \
		|| echo "torch could not be installed: attackers cannot be trained, and methods and engines that need it will not run."
	@$(PINNED) --requirement requirements/whisper.txt 2>/dev/null \
		|| echo "faster-whisper could not be installed: the recogniser Whisper base will not run."
	@$(PINNED) --requirement requirements/moonshine.txt 2>/dev/null \
		|| echo "moonshine-voice could not be installed: the recogniser Moonshine tiny will not run."
	@$(PINNED) --requirement requirements/kokoro.txt 2>/dev/null \
		|| echo "hibari-tts could not be installed: the synthesiser Kokoro and the anonymiser t04 will not run."
	@$(PINNED) --requirement requirements/sentry.txt 2>/dev/null \
		|| echo "sentry-sdk could not be installed: errors cannot be sent to Sentry."
	@touch $@

# The program of teams, of this checkout.
$(BIN)/vp: portal/client/vp.sh $(VENV)/portal
	@install -m 755 $< $@

$(VENV)/dev: $(VENV)/portal requirements-dev.txt | $(BIN)/vp
	@echo "Installing the packages for tests and checks into $(VENV)"
	@$(PINNED) --requirement requirements-dev.txt
	@touch $@

$(VENV)/models: $(VENV)/base
	@echo "Fetching the models of attackers, recognisers, synthesiser, vocoder (about 470 MB)"
	@$(BIN)/python -m portal.client models fetch --all || echo "The portal runs without these models; make models tries again."
	@touch $@
