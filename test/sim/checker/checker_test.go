package checker

import (
	"strconv"
	"strings"
	"testing"
)

// Every corruption of a correct database is reported as the rule that it breaks.
func TestCorruptionsAreReported(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(s *scene) {
		s.populate()
		s.relax()
		pending := s.pendingEvent()
		seen := map[string]bool{}
		for _, c := range corruptions {
			if seen[c.name] {
				s.t.Errorf("two corruptions have the name %q", c.name)
			}
			seen[c.name] = true
			statements := make([]string, len(c.sql))
			for i, text := range c.sql {
				statements[i] = pending.Replace(text)
			}
			s.want(c.name, s.corrupt(statements, nil), c.invariant, c.words)
		}
	})
}

// pendingEvent puts the public id and the number of an undelivered event into statements.
func (s *scene) pendingEvent() *strings.Replacer {
	s.t.Helper()
	for _, o := range s.checker.orderList {
		for _, e := range o.events {
			if e.delivery != nil && e.delivery.state == "pending" {
				return strings.NewReplacer("{pending}", publicEventID(e.key.id), "{number}", strconv.FormatInt(e.number, 10))
			}
		}
	}
	s.t.Fatal("no delivery is pending")
	return nil
}
