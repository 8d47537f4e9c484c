package processor

import (
	"context"
	"time"
)

// Finding is the result of one check of an account at its processor.
type Finding struct {
	Check   string // what was checked
	Problem string // "" if it is right
	Action  string // what to do about it
}

// Inspector checks an account at its processor, without an effect there.
type Inspector interface {
	Inspect(ctx context.Context) []Finding
}

// Registrar is a processor at which a program can register the address for notices.
type Registrar interface {
	// Register registers an address until ttl has passed.
	Register(ctx context.Context, noticeURL string, ttl time.Duration) error
}
