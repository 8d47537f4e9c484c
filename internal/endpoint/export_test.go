package endpoint

import "github.com/porteira/porteira/internal/worker"

// ThrottleWhile makes a function of the test say whether requests queue for their commits.
func (s *Service) ThrottleWhile(backlogged func() bool) {
	s.throttle = worker.NewThrottle(s.Env.Clock, backlogged)
}
