# Everything that a developer runs. CI runs `make check` on a clean machine.
FUZZ ?= -each 5s
SEEDS ?= 200
FROM ?= 1
KILLS ?= 300
ROUNDS ?= 1
PAIRS ?= 5
TESTFLAGS ?=
export CGO_ENABLED ?= 1

.PHONY: help dev build test check lint oracle fuzz mutants simulate crashtest disktest bench docs tools

help: ## Say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 10

dev: ## Run the gateway with its sandbox on 127.0.0.1:8080
	go run ./cmd/porteira dev

build: ## Build bin/porteira
	CGO_ENABLED=0 go build -trimpath -o bin/porteira ./cmd/porteira

test: tools ## Run all tests with the race detector, on SQLite and PostgreSQL
	bin/gotestsum --format pkgname --hide-summary=skipped -- -race -timeout 15m $(TESTFLAGS) ./...
	cd test/crashtest && ../../bin/gotestsum --format pkgname --hide-summary=skipped -- -race -timeout 15m $(TESTFLAGS) ./...

check: lint oracle test simulate fuzz ## All that CI checks: format, vet, lint, house rules, published packages, race tests on both engines, each fuzz target

lint: tools ## Check format, vet, lint, modules, house rules and the hot path's budget of allocations
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')) && test -z "$$unformatted" || { echo "gofmt: $$unformatted" >&2; exit 1; }
	go vet ./...
	bin/golangci-lint run ./...
	cd test/crashtest && go vet ./... && ../../bin/golangci-lint run ./...
	go test -count=1 ./internal/tidy
	go test -count=1 -run '^TestAllocations$$' ./internal/httpapi # which the race detector blurs

oracle: ## Install published npm packages, and let them judge BR Codes, boletos, keys, documents and signatures
	cd tools/oracle && npm ci --silent
	cd tools/browser && npm ci --silent
	PORTEIRA_REQUIRE_NODE=1 go test -count=1 ./tools/oracle

fuzz: ## Run every fuzz target for 5 seconds, or as long as FUZZ="-total 20m" says
	go run ./tools/fuzz $(FUZZ)

mutants: ## Plant bugs, one at a time, and show which test notices each (those ONLY names); RECORD=1 keeps the figures
	go run ./tools/mutants $(if $(ONLY),-only $(ONLY)) $(if $(RECORD),-record)

simulate: ## Simulate SEEDS (200) seeds on SQLite and a tenth of them on PostgreSQL, or on ENGINE alone, or FOR a duration; FROM is the first; RECORD=1 keeps the figures
ifdef ENGINE
	go test ./internal/simulate -count=1 -run TestSeeds -v -timeout 0 -engine $(ENGINE) -seeds $(SEEDS) -from $(FROM) $(if $(FOR),-for $(FOR)) $(if $(RECORD),-record)
else
	@$(MAKE) --no-print-directory simulate ENGINE=sqlite
	@$(MAKE) --no-print-directory simulate ENGINE=postgres SEEDS=$$(( $(SEEDS) / 10 ))
endif

crashtest: ## Kill, stop and disconnect the real binary until KILLS (300) per ENGINE, or FOR a duration, and compare all records; with GATEWAYS, SEED
	cd test/crashtest && go run . $(if $(FOR),-for $(FOR),-kills $(KILLS)) $(if $(ENGINE),-engine $(ENGINE)) $(if $(SEED),-seed $(SEED)) $(if $(GATEWAYS),-gateways $(GATEWAYS))

disktest: ## Run the real binary on a disk that fails, each scenario or ONLY some, ROUNDS (1) times per ENGINE, and compare all records; as root
	cd test/crashtest && go run . -disk $(or $(ONLY),all) -rounds $(ROUNDS) $(if $(ENGINE),-engine $(ENGINE)) $(if $(SEED),-seed $(SEED))

bench: ## Measure pay-ins and payouts, on SQLite and PostgreSQL or ENGINE alone; against the Go program in the folder STICK, PAIRS (5) times in turn, with OPEN=1 by latency too
	go run ./tools/bench -pairs $(PAIRS) $(if $(STICK),-stick $(STICK)) $(if $(ENGINE),-engine $(ENGINE)) $(if $(MODES),-modes $(MODES)) $(if $(OPEN),-open) $(if $(DATA),-data $(DATA))

docs: ## Write the generated parts of docs, and RESULTS.md, anew
	go test ./api ./internal/payment ./internal/ledger ./internal/config ./tools/results -update

tools: ## Build the linter and the test runner into bin/
	@mkdir -p bin
	@test -x bin/golangci-lint || (cd tools/lint && CGO_ENABLED=0 go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
	@test -x bin/gotestsum || (cd tools/lint && CGO_ENABLED=0 go build -o ../../bin/gotestsum gotest.tools/gotestsum)
