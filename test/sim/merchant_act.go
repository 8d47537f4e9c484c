package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"

	"github.com/porteira/porteira/test/sim/checker"
)

// act performs an action of clients on an acknowledged order.
func (m *merchant) act(o *order) {
	s := m.sim
	if s.faultsOff || o.ID == "" {
		return
	}
	if o.of != nil {
		m.actOnRefund(o)
		return
	}
	state := s.stateOf(o.ExternalID)
	act := s.nextInTurn("client acts", state, clientActs)
	s.countFault(s.groupOf("client", o.ExternalID), act, state)
	var a answer
	switch act {
	case "repeated":
		m.send(o, 0)
		return
	case "at_once":
		m.send(o, 0)
		m.send(o, 0)
		return
	case "changed":
		a = m.sendChanged(o)
	case "canceled":
		a = m.cancel(o)
	case "read":
		a = m.read(o)
		m.readForeign(o)
	}
	s.trace.linef("%s %s %s: %d %s", m.name, act, o.Reference, a.status, a.Code)
}

// sendChanged sends another request under the same reference, which must be refused.
func (m *merchant) sendChanged(o *order) answer {
	changed := bytes.Replace(o.body, fmt.Appendf(nil, `"amount":%d`, o.Amount), fmt.Appendf(nil, `"amount":%d`, o.Amount+1), 1)
	a := m.call(http.MethodPost, o.path(), changed, "")
	if a.status != http.StatusConflict && !a.unavailable() {
		m.sim.violate(checker.SingleOrder, m.id, o.ID, fmt.Sprintf("another request under %s is answered %d: %s", o.Reference, a.status, a.body))
	}
	return a
}

func (m *merchant) cancel(o *order) answer {
	s := m.sim
	a := m.call(http.MethodPost, "/"+o.Kind+"/"+o.ID+"/cancel", nil, "")
	switch {
	case a.status == http.StatusOK:
		if !o.Canceled && o.Kind == checker.Payin {
			s.scheduleMoreActs(o)
		}
		o.Canceled = true
	case a.status != http.StatusConflict && !a.unavailable():
		s.violate(checker.States, m.id, o.ID, fmt.Sprintf("cancel is answered %d: %s", a.status, a.body))
	}
	return a
}

func (m *merchant) read(o *order) answer {
	a := m.call(http.MethodGet, o.resource(), nil, "")
	switch {
	case a.status == http.StatusOK:
		a.replayed = true // reads have no such header
		m.recordAnswer(o, &a)
	case !a.unavailable():
		m.sim.violate(checker.Durability, m.id, o.ID, fmt.Sprintf("an acknowledged order is answered %d: %s", a.status, a.body))
	}
	return a
}

// readForeign reads the order as another merchant, who must not find it.
func (m *merchant) readForeign(o *order) {
	s := m.sim
	own := slices.Index(s.merchants, m)
	other := s.merchants[(s.number(len(s.merchants)-1)+1+own)%len(s.merchants)]
	a := other.call(http.MethodGet, o.resource(), nil, "")
	if a.status != http.StatusNotFound && !a.unavailable() {
		s.violate(checker.Isolation, other.id, o.ID, fmt.Sprintf("another merchant's order is answered %d: %s", a.status, a.body))
	}
}
