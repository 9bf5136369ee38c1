# Everything a newcomer needs: `make demo`, `make test`. Both use .venv and install what they need by themselves.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Every install goes through the constraints: an unpinned torch would pull gigabytes of CUDA.
INSTALL := $(PIP) install --constraint constraints.txt
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-slow test-paper lint type docs bench fly-again clean

demo: .venv/light
	$(BIN)/phygail recover --uavs 200 --damage 0.6 --seed 3 --methods sidr,phygail,convex --picture out/demo.png

test: lint type
	$(BIN)/python -m pytest -n 2 --dist loadgroup

test-slow: .venv/full
	$(BIN)/python -m pytest -m slow

test-paper: .venv/full
	$(BIN)/python -m pytest -m paper

lint: .venv/full
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: .venv/full
	$(BIN)/mypy

docs: .venv/full
	$(BIN)/sphinx-build -W --keep-going -q docs docs/_build

bench: .venv/full
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

# A share of the rows under results/, flown again: after a change of a rule, and before tables are made anew.
# Options of the script in FLY, e.g. make fly-again FLY='--only overall --methods reach'.
fly-again: .venv/full
	$(BIN)/python results/fly_again.py $(FLY)

clean:
	rm -rf .venv docs/_build out

# One stamp file per set of extras; they are remade when the requirements change.
.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/light: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable .
	touch $@

.venv/full: .venv/bin/python pyproject.toml constraints.txt
	$(INSTALL) --editable '.[learn,env,cluster,web,dev]'
	-npm install --silent --no-audit --no-fund --prefix .venv/node axe-core@4  # checks that everybody can use the page
	touch $@ .venv/light
