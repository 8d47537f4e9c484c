package endpoint

import (
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/worker"
)

// ThrottleWhile makes a function of the test say whether requests queue for their commits.
func (s *Service) ThrottleWhile(backlogged func() bool) {
	s.throttle = worker.NewThrottle(s.Env.Clock, backlogged)
}

// Dispatch is the operation that makes the deliveries of an endpoint's next events.
type Dispatch = dispatch

// NewDispatch is the operation of [Service.Dispatch].
func NewDispatch(ref store.Ref) *Dispatch { return &dispatch{Ref: ref, limit: eventsAtOnce} }

// Delivered is how many deliveries the operation made due.
func (v *dispatch) Delivered() int { return v.delivered }
