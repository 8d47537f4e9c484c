#!/usr/bin/env bash
# Runs each fuzz target of the modules for a time:
#   tools/fuzz.sh 2s . tools
# `go test -fuzz` builds a program per target, and everything that it imports a second time to
# observe its branches: SQLite, and the standard library. This builds a program per package, in
# which only our branches and those of the JSON decoder are observed.
set -euo pipefail
cd "$(dirname "$0")/.."
time=$1
shift
bin=$PWD/bin
observe=(-gcflags=github.com/porteira/porteira/...=-d=libfuzzer -gcflags=github.com/go-json-experiment/json/...=-d=libfuzzer)
mkdir -p "$bin"

# Lines "package folder" of the packages that have targets.
for module in "$@"; do
	(cd "$module" && go list -f '{{$p := .}}{{range .TestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}{{range .XTestGoFiles}}{{$p.ImportPath}} {{$p.Dir}}/{{.}}
{{end}}' ./...) | while read -r package file; do
		if [ -n "$file" ] && grep -q '^func Fuzz' "$file"; then echo "$package ${file%/*}"; fi
	done
done | uniq >"$bin/fuzz.list"
test -s "$bin/fuzz.list"

while read -r package folder; do
	cd "$folder"
	go test -c -vet=off -ldflags=-w "${observe[@]}" -o "$bin/fuzz.test"
	for target in $("$bin/fuzz.test" -test.list '^Fuzz'); do
		echo "$package $target"
		"$bin/fuzz.test" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" \
			-test.fuzzcachedir "$(go env GOCACHE)/fuzz/$package" </dev/null 2>&1 | tee "$bin/fuzz.log" ||
			# Before 1.27 Go may report the end of the time as a failure (https://go.dev/issue/75804).
			{ grep -q '^    context deadline exceeded' "$bin/fuzz.log" && ! grep -q 'testdata/fuzz\|seed corpus' "$bin/fuzz.log"; } ||
			{ echo "FAILED: $package $target" >&2 && exit 1; }
		if grep 'not built with coverage' "$bin/fuzz.log" >&2; then exit 1; fi
	done
done <"$bin/fuzz.list"
