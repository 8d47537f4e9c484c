# What a developer runs. CI runs `make check` on a clean machine; `make prove` precedes a release.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
export CGO_ENABLED ?= 1

# The Go of go.mod, whose fixes a release needs, even if the machine's is older.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' go.mod)

MODULES := . tools test/crashtest
FUZZTIME ?= 1s
SEEDS ?= 24
FROM ?= 1
KILLS ?= 300
DEATHS ?= 200
ROUNDS ?= 1

TEST := go test -vet=off -count=1

# SQLite is C that was translated to Go. It keeps its memory outside of Go's, where the race
# detector sees nothing, and is three times as slow if it is instrumented. Its driver is instrumented.
RACE := -race $(foreach package,sqlite/lib libc memory,-gcflags=modernc.org/$(package)=-race=false)

# Tests end processes, not the machine, so their files may be in memory, if it has room and runs programs.
MEMORY := $(shell { file=$$(mktemp -p /dev/shm) && cp /bin/true $$file && chmod +x $$file && $$file && \
	test $$(df --output=avail /dev/shm | tail -n 1) -gt 4000000 && echo /dev/shm; rm -f $$file; } 2> /dev/null)
ifneq ($(MEMORY),)
export GOTMPDIR := $(or $(GOTMPDIR),$(TMPDIR),/tmp)
test race simulate driverkills: export TMPDIR := $(MEMORY)
endif

# Tests wait for PostgreSQL and for processes that they start, so one package more than there are
# CPUs is tested at once.
PACKAGES := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))

# Packages whose own goroutines share memory, and the tests of whole gateways under concurrent
# requests. The others run one goroutine, or those of these packages.
RACED := $(addprefix ./internal/,account cluster commit delivery env processor/accounthttp webhook worker write)
TOGETHER := ^Test(ThousandRequestsOfOneReference|TwoRequestsOfOneReference|PayoutsBeyondTheBalance)$$

.PHONY: help dev build test check prove race lint vuln oracle npm fuzz mutants simulate driverkills crashtest disktest docs sbom lines

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 12

dev: ## Run the gateway with its sandbox on 127.0.0.1:8080
	go run ./cmd/porteira dev

build: ## Build bin/porteira
	CGO_ENABLED=0 go build -trimpath -o bin/porteira ./cmd/porteira

sbom: build ## Write bin/porteira.cdx.json, the modules that bin/porteira is made of (CycloneDX)
	go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0 bin -json -std -noserial -notimestamp -output bin/porteira.cdx.json bin/porteira

# The runtime of the race detector would sleep for a second at the end of each test binary.
test race: export GORACE := atexit_sleep_ms=0
test: ## Run all tests on SQLite and PostgreSQL, with the race detector where goroutines meet (TESTFLAGS: more flags of go test)
	cd tools && go run ./runtests -vet=off -p $(PACKAGES) -timeout 15m $(TESTFLAGS) \
		-- $(RACE) $(RACED) -- $(RACE) -run '$(TOGETHER)' ./internal/app

race: export PORTEIRA_TEST_ENGINES := all
race: ## Run all tests with the race detector, those of rules on PostgreSQL too
	cd tools && go run ./runtests -vet=off $(RACE) -p $(PACKAGES) -timeout 30m $(TESTFLAGS)

# The tests come last: their last lines say what was not tested.
check: lint vuln npm test ## Run what CI runs, in ten minutes: lint, vuln, npm, test
	@echo
	@echo 'NOT TESTED by make check, but by make prove: the rules of use cases on PostgreSQL, the race detector'
	@echo 'in other packages, long fuzzing, simulated seeds, kills of drivers and of the real binary, failing disks (as root), seeded bugs.'

prove: lint vuln npm race ## Run everything before a release, in hours: check with the race detector, fuzz, simulate, driverkills, crashtest, disktest, mutants
	$(MAKE) fuzz FUZZTIME=10s
	$(MAKE) simulate ENGINE=sqlite SEEDS=1000
	$(MAKE) simulate ENGINE=postgres SEEDS=50
	$(TEST) ./internal/app/coretest -run TestMixedOperations -mixed 10000 -timeout 0
	$(MAKE) driverkills
	$(MAKE) crashtest
	$(MAKE) disktest
	$(MAKE) mutants

# golangci-lint has all analyzers of `go vet`, so no test vets its package again.
lint: bin/golangci-lint ## Check format, linters, house rules and the allocations of a request
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')) && test -z "$$unformatted" || { echo "gofmt: $$unformatted" >&2; exit 1; }
	@for module in $(MODULES); do (cd $$module; set -x; $(CURDIR)/bin/golangci-lint run ./...); done
	$(TEST) ./internal/tidy
	$(TEST) -run '^TestAllocations$$' ./internal/httpapi # not exact under the race detector

vuln: ## Check the program for known vulnerabilities that it can reach
	tools/vuln.sh

oracle: npm ## Check codes, documents and signatures against published npm packages, and lint the contract
	cd tools && $(TEST) ./oracle

npm: ## Install the npm packages that tests use
	@if command -v npm > /dev/null; then \
		for folder in oracle browser; do (cd tools/$$folder; npm ci --silent); done; \
	elif [ "$${CI:-}" = true ] || [ "$${PORTEIRA_REQUIRE_NODE:-}" = 1 ]; then \
		echo 'npm is not installed' >&2; exit 1; \
	else \
		echo 'npm is not installed: NOT TESTED against published packages' >&2; \
	fi

fuzz: ## Run each fuzz target for FUZZTIME (1s)
	@tools/fuzz.sh $(FUZZTIME) $(MODULES)

mutants: ## Seed faults one at a time and show which test notices each (ONLY: part of an id or a file)
	cd tools && go run ./mutants $(if $(ONLY),-only $(ONLY))

simulate: ## Simulate SEEDS (24) seeds from FROM (1) on SQLite and an eighth on PostgreSQL (ENGINE: one of them; FOR: a duration)
ifdef ENGINE
	$(TEST) ./test/sim -run TestSeeds -v -timeout 0 -engine $(ENGINE) -seeds $(SEEDS) -from $(FROM) $(if $(FOR),-for $(FOR))
else
	@$(MAKE) --no-print-directory simulate ENGINE=sqlite
	@$(MAKE) --no-print-directory simulate ENGINE=postgres SEEDS=$$(( $(SEEDS) / 8 ))
endif

driverkills: ## Kill the gateway DEATHS (200) times between any two messages of each driver (DRIVER: one of them; ENGINE)
	$(TEST) ./test/drivers -run TestKills -timeout 0 -engine $(or $(ENGINE),sqlite) -kills $(DEATHS) $(if $(DRIVER),-driver $(DRIVER)) $(TESTFLAGS)

crashtest: ## Kill, stop and disconnect the real binary until KILLS (300) per ENGINE, or FOR a duration, and compare all records; with GATEWAYS, SEED
	cd test/crashtest && go run . $(if $(FOR),-for $(FOR),-kills $(KILLS)) $(if $(ENGINE),-engine $(ENGINE)) $(if $(SEED),-seed $(SEED)) $(if $(GATEWAYS),-gateways $(GATEWAYS))

disktest: ## Run the real binary on a disk that fails, each scenario or ONLY some, ROUNDS (1) times per ENGINE, and compare all records; as root
	cd test/crashtest && go run . -disk $(or $(ONLY),all) -rounds $(ROUNDS) $(if $(ENGINE),-engine $(ENGINE)) $(if $(SEED),-seed $(SEED))

docs: ## Regenerate the generated parts of docs
	go test ./api ./internal/effect ./internal/payment ./internal/ledger ./internal/config -update

lines: ## Count the lines of code and of tests by group
	@tools/lines.sh

# A module of its own: the linter's dependencies must not choose versions of the product's.
bin/golangci-lint: tools/lint/go.mod
	cd tools/lint && CGO_ENABLED=0 go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch bin/golangci-lint
