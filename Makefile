# Everything that a developer runs. CI runs `make check` on a clean machine.
FUZZTIME ?= 5s
SEEDS ?= 200
FROM ?= 1
KILLS ?= 300
ROUNDS ?= 1
TESTFLAGS ?=
export CGO_ENABLED ?= 1
SHELL := bash
.SHELLFLAGS := -euo pipefail -c

.PHONY: help dev build test check lint oracle fuzz mutants simulate torture disk docs tools

help: ## Say what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):[^#]*## /\1\t/' | expand -t 10

dev: ## Run the gateway with its sandbox on 127.0.0.1:8080
	go run ./cmd/porteira dev

build: ## Build bin/porteira
	CGO_ENABLED=0 go build -trimpath -o bin/porteira ./cmd/porteira

test: tools ## Run all tests with the race detector, on SQLite and PostgreSQL
	bin/gotestsum --format pkgname --hide-summary=skipped -- -race -timeout 15m $(TESTFLAGS) ./...

check: lint oracle test simulate fuzz ## All that CI checks: format, vet, lint, house rules, published packages, race tests on both engines, each fuzz target

lint: tools ## Check format, vet, lint, modules, house rules and the hot path's budget of allocations
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')) && test -z "$$unformatted" || { echo "gofmt: $$unformatted" >&2; exit 1; }
	go vet ./...
	bin/golangci-lint run ./...
	go test -count=1 ./internal/tidy
	go test -count=1 -run '^TestAllocations$$' ./internal/httpapi # which the race detector blurs

oracle: ## Install published npm packages, and let them judge BR Codes, boletos, keys, documents and signatures
	cd tools/oracle && npm ci --silent
	cd tools/browser && npm ci --silent
	PORTEIRA_REQUIRE_NODE=1 go test -count=1 ./tools/oracle

# Before 1.27 Go may report the end of the time as a failure (https://go.dev/issue/75804).
fuzz: ## Run each fuzz target for FUZZTIME (5s)
	@mkdir -p bin
	@go test -list '^Fuzz' ./... | awk '/^Fuzz/ { found[n++] = $$1 } /^ok/ { while (n > 0) print $$2, found[--n] }' > bin/fuzz.list
	@while read -r package target; do \
		echo "$$package $$target"; \
		go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) "$$package" < /dev/null 2>&1 | tee bin/fuzz.log || \
			{ grep -q '^    context deadline exceeded' bin/fuzz.log && ! grep -q 'testdata/fuzz\|seed corpus' bin/fuzz.log; } || \
			{ echo "FAILED: $$package $$target" >&2; exit 1; }; \
	done < bin/fuzz.list

mutants: ## Seed faults one at a time and show which test notices each (ONLY those whose id or file contains a text)
	go run ./tools/mutants -root . $(if $(ONLY),-only $(ONLY))

simulate: ## Simulate SEEDS (200) seeds on SQLite and a tenth of them on PostgreSQL, or on ENGINE alone, or FOR a duration; FROM is the first
ifdef ENGINE
	go test ./internal/simulate -count=1 -run TestSeeds -v -timeout 0 -engine $(ENGINE) -seeds $(SEEDS) -from $(FROM) $(if $(FOR),-for $(FOR))
else
	@$(MAKE) --no-print-directory simulate ENGINE=sqlite
	@$(MAKE) --no-print-directory simulate ENGINE=postgres SEEDS=$$(( $(SEEDS) / 10 ))
endif

torture: ## Kill the real program KILLS (300) times per ENGINE, or FOR a duration, and compare the books
	go run ./tools/torture $(if $(FOR),-for $(FOR),-kills $(KILLS)) $(if $(ENGINE),-engine $(ENGINE)) $(if $(SEED),-seed $(SEED)) $(if $(GATEWAYS),-gateways $(GATEWAYS))

disk: ## Run the real program on a disk that fails, ROUNDS (1) times per ENGINE, or ONLY some scenarios, and compare the books
	go run ./tools/disk -rounds $(ROUNDS) $(if $(ENGINE),-engine $(ENGINE)) $(if $(ONLY),-only $(ONLY)) $(if $(SEED),-seed $(SEED))

docs: ## Write the generated parts of docs anew
	go test ./api ./internal/payment ./internal/ledger ./internal/config -update

tools: ## Build the linter and the test runner into bin/
	@mkdir -p bin
	@test -x bin/golangci-lint || (cd tools/lint && CGO_ENABLED=0 go build -o ../../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint)
	@test -x bin/gotestsum || (cd tools/lint && CGO_ENABLED=0 go build -o ../../bin/gotestsum gotest.tools/gotestsum)
