# Everything here works from a clean clone on Debian 12 (or Fedora) with Go:
# what is missing is installed by scripts/install-deps.

export CGO_ENABLED = 0
# The tags with which podman's bindings build: only its client, and OpenPGP without a C
# library. `make env` prints them for a shell.
export GOFLAGS := $(shell go env GOFLAGS) -tags=remote,containers_image_openpgp
GOTESTSUM   = go run gotest.tools/gotestsum@v1.13.0
STATICCHECK = go run honnef.co/go/tools/cmd/staticcheck@v0.8.2
NFPM        = go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.0
GOVULNCHECK = go run golang.org/x/vuln/cmd/govulncheck@v1.1.4
FUZZTIME   ?= 1m
VERSION    ?= $(shell git describe --always --dirty 2>/dev/null || echo unknown)

PREFIX     ?= /usr/local
DESTDIR    ?=
# What a release is built for. On macOS it collects, and starts replicas in clusters.
PLATFORMS  ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
# The folder from which users will download a release's archives: the manifest for krew
# and the formula for Homebrew name it.
RELEASE_URL ?= https://example.org/ovs-offline/$(VERSION)
# Files carry the commit's time, so that the same source gives the same bytes.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)

.PHONY: build env man install dist demo quick test sets sweep kubernetes test-k8s test-ovnkube test-kubeovn test-versions test-kernel test-ovn test-hotsos fuzz fidelity bench docs lint sbom vulnerabilities deps test-deps

build:
	go build -trimpath -ldflags "-s -w -X ovs-offline/cmd.version=$(VERSION)" -o build/ovs-offline .

# What a shell has to set for Go, as `eval "$(make env)"`.
env:
	@echo "export CGO_ENABLED='$(CGO_ENABLED)' GOFLAGS='$(GOFLAGS)'"

# Man pages, and completions of bash, zsh and fish.
man:
	rm -rf build/share
	go run ./scripts/man build/share

install: build man
	install -D -m 755 build/ovs-offline $(DESTDIR)$(PREFIX)/bin/ovs-offline
	cd build/share && find . -type f -exec install -D -m 644 {} $(DESTDIR)$(PREFIX)/share/{} \;

# Archives, deb and rpm packages, an image of this machine's Open vSwitch and OVN for
# pods, a krew manifest, a Homebrew formula, and their checksums.
dist: man
	VERSION='$(VERSION)' PLATFORMS='$(PLATFORMS)' RELEASE_URL='$(RELEASE_URL)' NFPM='$(NFPM)' scripts/dist

demo: deps build
	scripts/demo build/ovs-offline

# Tests start real daemons, and wait for them: three packages at a time keep two cores busy. testrun takes the kept sets of
# the lab, or records them if what makes them has changed, and ends what tests leave. The packages that take longest begin, so that none of them
# runs alone at the end. make lint vets, and no test reads the symbols of a program. Results of unchanged packages whose tests
# do not call ovs.Need come from Go's test cache.
TESTED = --format pkgname-and-test-fails --format-hide-empty-pkg
UNVETTED = -vet=off -ldflags=-s
PACKAGES = ./cmd ./test/generate/sosgen ./test/oracle/fidelity ./replica/restore ./...
test: test-deps build/testrun
	build/testrun -sets build/sets $(GOTESTSUM) $(TESTED) --jsonfile build/test.json -- $(UNVETTED) -p 3 -timeout 70m $(PACKAGES)
	@scripts/figures build/test.json

# The sets of the lab as a machine with Debian 12 records them, for all who test. After a change of what makes them, the
# new archive belongs into the same commit.
sets: deps test-deps
	go run ./scripts/sets keep .

# All rows of all tests, with sets that are recorded anew: what `make test` has of each shape and each kind of truth, and the
# products of these. CI does not run it.
sweep: test-deps build/testrun
	OVS_OFFLINE_SWEEP=1 build/testrun -sets build/sets -anew $(GOTESTSUM) $(TESTED) --jsonfile build/sweep.json -- $(UNVETTED) -count=1 -p 3 -timeout 90m $(PACKAGES)
	@scripts/figures build/sweep.json

build/testrun: $(shell find scripts/testrun test/oracle/sets internal/filelock -name '*.go')
	@mkdir -p build
	go build -o $@ ./scripts/testrun

# The tests that start no daemon or other program, of packages that link neither Kubernetes nor engines, which takes
# seconds for each: under a minute with a warm build cache. Results of unchanged packages come from Go's test cache. The
# other tests skip in -short mode, through ovs.Need of test/daemons/ovs.
quick:
	go test -short $(UNVETTED) $$(go list -test -f '{{if eq .Name "main"}}{{.ImportPath}} {{join .Deps " "}}{{end}}' ./... | awk '/\.test / && !/ k8s\.io\/client-go\/rest | go\.podman\.io\// {sub(/\.test$$/, "", $$1); print $$1}')

# Every fuzz target in turn, FUZZTIME each; make test runs their seeds.
fuzz:
	FUZZTIME=$(FUZZTIME) scripts/fuzz

# collect-k8s and replicas in pods, against a real API server, real kubelets, and the
# scheduler and controllers, which are built from their modules (about ten minutes of CPU
# the first time). The nodes need root, containerd and runc.
KUBERNETES = v1.36.3
COMPONENT  = k8s.io/component-base/version
kubernetes:
	cd test/e2e/k8s/kubernetes && nice go build -ldflags "-s -w -X $(COMPONENT).gitVersion=$(KUBERNETES) -X $(COMPONENT).gitMajor=1 -X $(COMPONENT).gitMinor=36" -o ../../../../build/kubernetes .
	cd test/e2e/k8s && go build -o ../../../build/pause ./pause

test-k8s: build test-deps kubernetes
	cd test/e2e/k8s && OVS_OFFLINE_SETS=$$(cd ../../.. && go run ./scripts/sets cached build/sets) $(GOTESTSUM) --format testname --jsonfile ../../../build/test-k8s.json -- -count=1 -parallel 4 -timeout 30m
	@scripts/figures build/test-k8s.json

# A real OVN-Kubernetes of two zones, with real kubelets, on OVS and OVN of Debian sid: the answers by
# names, reach, drift and compare against real packets. ovnkube is built from its module, and so is an older
# release for an upgrade (some five minutes of CPU each the first time); the nodes need root, containerd
# and runc.
OLDER_OVNKUBE = github.com/ovn-org/ovn-kubernetes/go-controller@v0.0.0-20250901081027-bc4f9b80d20d
test-ovnkube: build test-deps kubernetes
	scripts/roots build/roots
	cd test/e2e/k8s && go run ./ovnkube/build ../../../build/ovnkube
	cd test/e2e/k8s && go run ./ovnkube/build ../../../build/ovnkube-older $(OLDER_OVNKUBE)
	cd test/e2e/k8s && $(GOTESTSUM) --format testname --jsonfile ../../../build/test-ovnkube.json --packages ./ovnkube -- -count=1 -timeout 30m
	@scripts/figures build/test-ovnkube.json

# A real kube-ovn of two nodes, likewise. kube-ovn is built from its module (some four minutes of CPU
# the first time).
test-kubeovn: build test-deps kubernetes
	scripts/roots build/roots
	cd test/e2e/k8s && go run ./kubeovn/build ../../../build/kubeovn
	cd test/e2e/k8s && $(GOTESTSUM) --format testname --jsonfile ../../../build/test-kubeovn.json --packages ./kubeovn -- -count=1 -timeout 30m
	@scripts/figures build/test-kubeovn.json

# Nodes of the lab that other releases of Open vSwitch and OVN ran, replayed by their own
# version and by others, and the sets of the lab on each release: their traces, their drift,
# and the comparison of two releases. debootstrap makes the releases' root file systems the
# first time, in some two minutes; without root or the archive, the tests skip. CI does not run the rehearsals
# of upgrades: make test-versions VERSIONED=./answer/whatif does.
VERSIONED = ./test/oracle/fidelity ./answer/trace ./snapshot/rules ./answer/trace/follow ./answer/drift ./replica/scratch ./answer/compare ./answer/check
test-versions: test-deps
	scripts/roots build/roots
	OVS_OFFLINE_ROOTS=$(CURDIR)/build/roots $(GOTESTSUM) --format testname --jsonfile build/test-versions.json --packages '$(VERSIONED)' -- -count=1 -parallel 2 -timeout 20m -run 'OfEachVersion|OldOVN|OfReleases|OfEachRelease|OtherReleases|Upgrade'
	@scripts/figures build/test-versions.json

# Sets of the lab on the kernel's datapath, in a kernel of Debian that QEMU boots without
# KVM or privileges, and what trace says of their packets: half an hour on an idle machine. The
# sets of the last run stay in build/kernel/recorded. Network namespaces are restored there as well: that kernel has
# modules, and VRFs. The set kubernetes-udn needs them; its packets are traced there and here.
KERNEL_NAMESPACES = ReadBackIdentical|Bridge|VRF|RouterIsRestored|NothingLeaves
test-kernel:
	scripts/install-deps --test --kernel
	scripts/kernel/prepare build/kernel
	go build -o build/kernel/sets ./scripts/sets
	go build -o build/kernel/relay ./test/oracle/sets/relay
	GUEST_SECONDS=5400 scripts/kernel/guest build/kernel env LAB_RELAY=$(CURDIR)/build/kernel/relay build/kernel/sets --kernel all build/kernel/recorded
	go test -c -o build/kernel/follow.test ./answer/trace/follow
	GUEST_SECONDS=1800 scripts/kernel/guest build/kernel scripts/kernel/vrfs build/kernel
	GUEST_SECONDS=1200 scripts/kernel/guest build/kernel scripts/kernel/namespaces env OVS_OFFLINE_KERNEL_SETS=$(CURDIR)/build/kernel/recorded $(CURDIR)/build/kernel/follow.test -test.v -test.run ThroughVRFs
	go test -c -o build/kernel/keeper.test ./replica/linux/keeper
	GUEST_SECONDS=1200 scripts/kernel/guest build/kernel scripts/kernel/namespaces $(CURDIR)/build/kernel/keeper.test -test.v -test.timeout 20m -test.run '$(KERNEL_NAMESPACES)'
	OVS_OFFLINE_KERNEL_SETS=$(CURDIR)/build/kernel/recorded $(GOTESTSUM) --format testname --jsonfile build/test-kernel.json -- -count=1 -p 2 -run TheKernelDid ./answer/trace ./answer/trace/follow

# Packets of OVN's own tests, recorded and traced. OVN is the folder of a build of OVN, which was
# configured with --with-ovs-source, INSTALLED the DESTDIR into which both were installed, and TESTS
# the numbers of tests. What was saved and asked stays in build/ovn.
test-ovn: build
	go build -o build/ovntests ./scripts/ovntests
	build/ovntests --packets 6 --tests '$(TESTS)' $(OVN) $(INSTALLED) build/ovn

# What check finds in the inputs of hotsos's own tests. HOTSOS is a checkout of
# github.com/canonical/hotsos.
test-hotsos: test-deps
	OVS_OFFLINE_HOTSOS=$(abspath $(HOTSOS)) $(GOTESTSUM) --format testname --packages ./test/oracle/hotsos -- -count=1

# How alike the traces of live nodes and their replicas are, node by node.
fidelity: test-deps
	go run ./scripts/fidelity

# Ratios to the bare parts, in one run of some five minutes. BENCH has flags, say
# BENCH='-flows 1000000 -db 1000 -archive 4000'; -h lists them. With
# BENCH='-markdown docs/performance.md' the tables there are of this run.
bench: build test-deps
	go run ./scripts/bench $(BENCH)
	go run ./scripts/growth

# The tables of packages in docs/architecture.md, from the comments of the packages.
docs:
	go run ./scripts/packages

# The tests of collect-k8s are modules of their own. In that of Kubernetes' servers,
# staticcheck would read all of Kubernetes.
lint:
	@test -z "$$(gofmt -l .)" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	go run ./scripts/packages -check
	go vet ./...
	$(STATICCHECK) ./...
	cd test/e2e/k8s && go vet ./... && $(STATICCHECK) ./...
	cd test/e2e/k8s/kubernetes && go vet ./...

# A software bill of materials of what build/ovs-offline is made of.
sbom: build
	go run ./scripts/sbom build/ovs-offline >build/sbom.cdx.json

# Known vulnerabilities in what is called; it needs https://vuln.go.dev.
vulnerabilities:
	$(GOVULNCHECK) ./...

deps:
	scripts/install-deps

test-deps:
	scripts/install-deps --test
