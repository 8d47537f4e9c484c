package main

import (
	"context"
	"fmt"
	"time"

	"github.com/porteira/porteira/internal/sandboxbank/bankapi"
)

// bankOperations are the bank's operations that faults are injected into.
var bankOperations = []bankapi.Operation{bankapi.OpCharge, bankapi.OpTransfer, bankapi.OpTransfer, bankapi.OpQuery}

// armBankFault arms a fault of the bank, if the bank is up.
func (r *run) armBankFault(ctx context.Context) {
	kind := pick(r.random, bankapi.FaultKinds)
	body := fmt.Sprintf(`{"operation":%q,"kind":%q,"count":%d}`, pick(r.random, bankOperations), kind, 1+r.random.below(8))
	switch status := r.bankOperator().send(ctx, "POST", r.bankURL+"/control/faults", body).status; {
	case status == 200:
		r.totals.add("bank faults", words(string(kind)), 1)
	case status >= 400 && status < 500:
		r.reportf("bank fault", "the bank refuses to arm %s: HTTP %d", kind, status)
	}
}

// operatorMax bounds a request of the bank's operator.
const operatorMax = 2 * time.Second

// bankOperator is the client of the bank's own interface.
func (c *cluster) bankOperator() *httpClient {
	return newHTTPClient(operatorMax, map[string]string{"Authorization": "Bearer " + bankSecret})
}
