# agentsite: `make run` and `make test` need only Go and make.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# os-arch[-arm level]: what a board or a laptop needs.
TARGETS := linux-arm-6 linux-arm-7 linux-arm64 linux-amd64 darwin-arm64 darwin-amd64 windows-amd64

.PHONY: all run build packages release refresh image test check e2e bench soak schema pinout examples clean help
all: agentsite

help:          ## list the targets
	@grep -hE '^[a-z0-9]+:.*##' $(MAKEFILE_LIST) | sed 's/:[^#]*##/\t/' | expand -t 10

agentsite: FORCE
	@go build -ldflags '$(LDFLAGS)' -o $@ ./cmd/agentsite
FORCE:

run: agentsite ## build and run a site: agentsite.yaml here, or a simulated greenhouse
	@./agentsite run

build: ## cross-compile static binaries into dist/ and print their sizes
	@mkdir -p dist
	@set -e; for t in $(TARGETS); do \
		os=$${t%%-*}; rest=$${t#*-}; arch=$${rest%%-*}; arm=$${rest#$$arch}; arm=$${arm#-}; \
		ext=; [ $$os = windows ] && ext=.exe; \
		out=dist/agentsite-$$os-$$arch$${arm:+v$$arm}$$ext; \
		CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch GOARM=$$arm go build -trimpath -ldflags '$(LDFLAGS)' -o $$out ./cmd/agentsite; \
		printf '%10d  %s\n' $$(wc -c <$$out) $$out; \
	done

packages: ## .deb, tarball, SBOM and SHA-256 of each in dist/packages, the same bytes each time
	@./deploy/packages

release: ## all files of a release in dist/release, signed; docs/releases.md has the parameters
	@./deploy/publish/build

refresh: ## the lists of packages and updates once more, before they expire
	@./deploy/publish/build refresh

image: ## an SD card for the 64-bit boards, and its manifest for Raspberry Pi Imager, in dist/image
	@./deploy/image/build

test: ## the tests; at most three minutes. make check vets
	go test -vet=off ./...

check: ## what a commit has to pass besides the tests
	@./.ci/check

SUBJECT ?=
e2e: ## whole-system tests with the real programs; SUBJECT="guard lan": only these (see .ci/README.md)
	@./.ci/e2e $(SUBJECT)

bench: ## the figures, as ratios against a baseline in the same run
	./.ci/bench

soak: ## the full counts of what e2e does a tenth of
	go test -count=1 -v -timeout 30m -run "TestModel|TestInterleavings" ./device/guard -thorough
	go test -count=1 -v -timeout 60m -run "Chains|Schedules" ./node/access -chains 10000000 -attacks 100000 -schedules 100000
	go test -count=1 -v -timeout 60m -run OneGrant ./node -interleavings 3000000
	SOAK=1 go test -count=1 -v -timeout 120m ./node/history
	SOAK=1 go test -count=1 -v -timeout 120m ./agents/rule/...
	go test -count=1 -v -timeout 60m -run "Model|Crashes|Kill" ./node/tasks -crashes 50000 -kills 500 -rapid.checks 50000
	go test -count=1 -v -timeout 4h -run WorstModel ./cmd/internal/hosting -turns 1000000
	SOAK=1 ./.ci/e2e
	FUZZTIME=5m ./.ci/long

schema: ## docs/agentsite.schema.json from the drivers
	go run ./cmd/agentsite schema >docs/agentsite.schema.json

pinout: ## docs/raspberry-pi.svg from docs/raspberry-pi.yaml
	go run ./cmd/agentsite pinout --config docs/raspberry-pi.yaml --root docs --svg docs/raspberry-pi.svg

examples: ## docs/examples/*/wiring.svg and expected.txt from their configurations and days
	go test ./cmd/agentsite -run 'TestExamples$$' -update-examples

clean: ## what was built
	rm -rf dist agentsite .cache
