#!/usr/bin/env bash
# Checks the shipped program for known vulnerabilities that it can reach. The database comes as
# a Go module, so it needs no other network. It is pinned: raise it before a release.
set -euo pipefail
cd "$(dirname "$0")/.."
check=golang.org/x/vuln/cmd/govulncheck@v1.9.0
reports=golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018

database=$PWD/bin/vulndb/${reports#*@}
if ! test -d "$database"; then
	folder=$(go mod download -json "$reports" | sed -n 's/^\t"Dir": "\(.*\)",\?$/\1/p')
	rm -rf bin/vulndb
	go run "${reports%@*}/cmd/indexdb@${reports#*@}" -vulns "$folder/data/osv" -out "$database.new"
	mv "$database.new" "$database"
fi
go run "$check" -db "file://$database" ./cmd/...
