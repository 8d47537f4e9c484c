#!/usr/bin/env bash
# Counts the lines of Go by group: code, and its tests. Code that only serves tests is their support.
set -euo pipefail
cd "$(dirname "$0")/.."
git ls-files -z '*.go' | xargs -0 wc -l | awk '
function assign(name, prefix, list, folders, i) {
	split(list, folders)
	for (i in folders) group[prefix folders[i]] = name
}
BEGIN {
	assign("use cases", "internal/", "account actor delivery dispute endpoint limits merchant notice outgoing payin payout query refund review search")
	assign("write path and helpers", "internal/", "write commit transition cluster worker env problem jsonwrite config")
	assign("pure middle", "internal/", "payment ledger money pricing receivable")
	assign("HTTP and JSON", "internal/", "httpapi wire reference sandboxcontrol weburl webhook")
	assign("drivers of processors", "internal/processor", "/apipix /asaas /accounthttp /sandbox")
	group["internal/processor"] = "drivers of processors"
	assign("store and databases", "internal/", "store db")
	assign("commands", "", "internal/cli cmd/porteira")
	assign("checkout", "internal/", "checkout checkout/bill checkout/codes")
	assign("assembly", "internal/", "app")
	assign("libraries and contract", "", "api boleto brcode docs pixkey taxid")
}
$2 == "total" { next }
{
	folder = $2
	sub("/[^/]*$", "", folder)
	if (folder ~ /^(test|tools)/ || folder ~ /internal\/tidy/ || folder ~ /test$/) name = "test support"
	else if (folder ~ /^internal\/(sandboxbank|bench)/) name = "simulated bank and bench"
	else name = folder in group ? group[folder] : "without a group: " folder
	if ($2 ~ /_test\.go$/) { tests[name] += $1; allTests += $1 }
	else { code[name] += $1; if (name == "test support") support += $1 }
	all[name]
}
END {
	for (name in all) {
		printf "%-28s %7d %7d\n", name, code[name], tests[name] | "sort"
		if (name !~ /^(test support|simulated bank)/) product += code[name]
	}
	close("sort")
	printf "\nproduct %d, tests and their support %d (%d and %d)\n", product, allTests + support, allTests, support
}'
