package flow_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/processor"
	"github.com/porteira/porteira/internal/store/storetest"
)

func TestMain(m *testing.M) { os.Exit(storetest.Main(m)) }

// fake is a processor that mints its charges and takes every transfer; what
// becomes of them, each test tells.
type fake struct{}

func (fake) Profile() processor.Profile {
	return processor.Profile{Name: "fake", IdempotentByOurID: true, ChargeTimeout: time.Second, TransferTimeout: 5 * time.Second}
}
func (fake) Mint(r processor.ChargeRequest) (processor.Charge, bool) {
	return processor.Charge{PIX: &payment.PIXDetail{QRCode: "x", TxID: r.ExternalID, ExpiresAt: r.ExpiresAt}}, true
}
func (fake) Charge(context.Context, processor.ChargeRequest) (a processor.ChargeAnswer) { return a }
func (fake) QueryCharge(context.Context, string) (r processor.ChargeReport)             { return r }
func (fake) Transfer(_ context.Context, r processor.TransferRequest, guard func() error) processor.TransferAnswer {
	return processor.TransferAnswer{Outcome: processor.Done, Report: processor.TransferReport{State: processor.TransferProcessing}}
}
func (fake) QueryTransfer(context.Context, string) (r processor.TransferReport) { return r }
