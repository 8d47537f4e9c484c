package app

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/processor"
)

// registrar registers addresses, or hangs until its call is over.
type registrar struct {
	hangs      bool
	registered chan string
}

// Profile implements [processor.Processor].
func (*registrar) Profile() processor.Profile { return processor.Profile{} }

// Register implements [processor.Registrar].
func (r *registrar) Register(ctx context.Context, noticeURL string, _ time.Duration) error {
	if r.hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	r.registered <- noticeURL
	return nil
}

// A bank that does not answer delays the registration at no other, and ends by itself.
func TestRegisterBesideABankThatHangs(t *testing.T) {
	t.Parallel()
	_, clock := env.Virtual(time.Unix(1_800_000_000, 0), 1)
	healthy := &registrar{registered: make(chan string, 1)}
	accounts := processor.Registry{"a": &registrar{hangs: true}, "b": healthy}
	ended := make(chan error, 1)
	go func() {
		ended <- registerAll(t.Context(), clock, accounts, func(_ context.Context, id string) (string, error) { return "https://gateway/" + id, nil })
	}()
	if got := <-healthy.registered; got != "https://gateway/b" {
		t.Errorf("registered %s", got)
	}
	clock.BlockUntil(1)
	clock.Advance(registerTimeout)
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "register account a") {
		t.Errorf("ended with %v", err)
	}
}
