# Everything a newcomer needs: `make demo`, `make test`. Both use .venv and install what they need by themselves.
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Every install goes through the constraints, which pin torch. Whether that is the CPU build depends on the package index:
# many serve builds with gigabytes of CUDA. Where yours does, name one that serves CPU builds: make test INDEX=URL
# (the address is on torch's own installation page; pip prefers its "+cpu" build of the pinned version).
INSTALL := $(PIP) install --constraint constraints.txt $(if $(INDEX),--extra-index-url $(INDEX))
DEMO := $(BIN)/phygail recover --uavs 200 --damage 0.6 --seed 3 --methods sidr,reach-evolved,convex
LIGHT_MB := 440  # what the light install may weigh, its libraries included
export OMP_NUM_THREADS ?= 1
unexport PYTHONDONTWRITEBYTECODE  # the many processes of the tests would compile the package each

.PHONY: demo install wheel figures test test-slow test-paper lint type docs bench fly-again clean

demo: .venv/light
	$(DEMO) --picture out/demo.png

# Every extra: comparisons, movies, training, the environment, the page's server, clusters, what the tests need.
install: .venv/full

# The wheel, built, installed into a fresh environment of its own, weighed and flown.
wheel: .venv/bin/python
	rm -rf out/wheel && mkdir -p out/wheel
	$(PIP) wheel --no-deps --wheel-dir out/wheel .
	$(PYTHON) -m venv out/wheel/venv
	out/wheel/venv/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt out/wheel/*.whl
	env -u PYTHONPATH out/wheel/venv/bin/python tools/weigh.py $(LIGHT_MB)
	cd out/wheel && env -u PYTHONPATH venv/bin/phygail recover --uavs 50 --damage 0.5 --methods reach-evolved,convex --picture demo.png

# Every picture that documents show, from rows on disk and fresh flights; make figures FORMATS=pdf,svg draws those of rows so, too.
figures: .venv/full
	$(DEMO) --picture docs/images/recovery.png
	$(BIN)/python results/update_readme.py --figures$(if $(FORMATS),=$(FORMATS))
	$(BIN)/python docs/make_pictures.py
	$(BIN)/python docs/make_pictures.py --flights

# Style and types are checked beside the tests and told below them; either failing fails. Without the values that pytest
# writes into every assertion its start takes half the time; what fails runs once more, with them.
test: .venv/full
	@mkdir -p out; ($(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy) > out/checks.log 2>&1 & checks=$$!; \
	$(BIN)/python -m pytest -n 2 --dist loadgroup --assert=plain; tests=$$?; \
	if [ $$tests = 1 ]; then $(BIN)/python -m pytest --last-failed; fi; \
	wait $$checks; checks=$$?; cat out/checks.log; \
	if [ $$tests != 0 ]; then echo "make test: tests failed"; fi; \
	if [ $$checks != 0 ]; then echo "make test: ruff or mypy failed"; fi; \
	[ $$tests = 0 ] && [ $$checks = 0 ]

# Properties draw other examples each time here; `make test` draws the same.
test-slow: .venv/full
	HYPOTHESIS_PROFILE=drawn $(BIN)/python -m pytest -m slow

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
	$(INSTALL) --editable '.[report,movie,learn,env,cluster,web,dev]'
	-npm install --silent --no-audit --no-fund --prefix .venv/node axe-core@4  # checks that everybody can use the page
	touch $@ .venv/light
