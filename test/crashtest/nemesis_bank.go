package main

import (
	"context"
	"fmt"
	"time"
)

// The bank's operations and the faults that it can inject into them.
var (
	bankOperations = []string{"charge", "transfer", "transfer", "query"}
	bankFaultKinds = []string{
		"refuse", "not_sent", "timeout_before", "timeout_after", "server_error_after", "late", "garbage",
		"notify_twice", "notify_reordered", "notify_never",
	}
)

// armBankFault arms a fault of the bank, if the bank is up.
func (r *run) armBankFault(ctx context.Context) {
	kind := pick(r.random, bankFaultKinds)
	body := fmt.Sprintf(`{"operation":%q,"kind":%q,"count":%d}`, pick(r.random, bankOperations), kind, 1+r.random.below(8))
	if r.bankOperator().send(ctx, "POST", r.bankURL+"/control/faults", body).status == 200 {
		r.totals.add("bank faults", words(kind), 1)
	}
}

// operatorMax bounds a request of the bank's operator.
const operatorMax = 2 * time.Second

// bankOperator is the client of the bank's own interface.
func (c *cluster) bankOperator() *httpClient {
	return newHTTPClient(operatorMax, map[string]string{"Authorization": "Bearer " + bankSecret})
}
