package simulate

import (
	"fmt"
	"strings"
	"time"
)

// story tells what became of an order, by its id, external id or reference: one
// line for each thing that happened, with the commit that did it and the time
// by the gateway's clock.
func (g *gatewayBook) story(name string) string {
	var text strings.Builder
	for _, o := range g.inOrder {
		if o.key.id.String() != name && o.external != name && o.reference != name {
			continue
		}
		fmt.Fprintf(&text, "%s %s, external id %s, reference %s, merchant %s\n", o.kind, o.key.id, o.external, o.reference, o.key.merchant)
		t := teller{g: g, order: o, text: &text}
		for i := range g.history {
			for t.commit < len(g.commits) && g.commits[t.commit] <= i {
				t.commit++
				t.entry = rowKey{}
			}
			t.tell(&g.history[i])
		}
		t.end()
	}
	return text.String()
}

// teller tells the changes of one order.
type teller struct {
	g      *gatewayBook
	order  *orderRow
	text   *strings.Builder
	commit int
	open   bool      // a line is being written
	entry  rowKey    // that it tells of
	was    rowChange // the order before
}

func (t *teller) end() {
	if t.open {
		t.text.WriteByte('\n')
	}
	t.open = false
}

// linef begins a line; at is in microseconds, 0 where the row has no time.
func (t *teller) linef(at int64, format string, args ...any) {
	t.end()
	stamp := strings.Repeat(" ", len(storyTime))
	if at != 0 {
		stamp = time.UnixMicro(at).UTC().Format(storyTime)
	}
	fmt.Fprintf(t.text, "  commit %-5d %s  ", t.commit+1, stamp)
	fmt.Fprintf(t.text, format, args...)
	t.open = true
}

const storyTime = "2006-01-02 15:04:05.000"

func (t *teller) tell(c *rowChange) {
	if !t.concerns(c) {
		return
	}
	did := map[rowOp]string{rowAdded: "begins", rowChanged: "goes on", rowFrozen: "is rewritten", rowDeleted: "is deleted"}[c.op]
	if c.op == rowFrozen || c.op == rowDeleted && c.kind != rowAttempt {
		t.linef(0, "%s %s %s", frozenRules[c.kind].what, c.key.id, did)
		return
	}
	switch c.kind {
	case rowPayin, rowPayout:
		t.tellOrder(c)
	case rowSend:
		at := c.n[1]
		t.linef(at, "send %d: %s", c.n[0], c.t[0])
		if c.op == rowAdded {
			fmt.Fprintf(t.text, " by %s", short(c.other))
		} else if c.t[1] != "" {
			fmt.Fprintf(t.text, " (%s)", c.t[1])
		}
	case rowPosting:
		if t.entry != c.key {
			t.linef(c.n[3], "entry %s:", c.t[0])
			t.entry = c.key
		}
		fmt.Fprintf(t.text, " %s %+d = %d", c.t[1], c.n[1], c.n[2])
	case rowEvent:
		t.linef(c.n[2], "event %d: %s, version %d, %s", c.n[0], c.t[0], c.n[1], publicEventID(c.key.id))
	case rowDelivery:
		t.tellDelivery(c)
	case rowAttempt:
		t.tellAttempt(c)
	case rowReceipt:
		t.linef(c.n[3], "receipt: %d of %d from %s payment %s", c.n[1], c.n[0], c.t[0], c.t[1])
	case rowDispute:
		t.linef(c.n[1], "dispute of %d: %s", c.n[0], c.t[0])
	case rowException:
		if c.op == rowAdded {
			t.linef(c.n[1], "a person is told: %s %d: %s", c.t[0], c.n[0], c.t[1])
		} else {
			t.linef(c.n[0], "what a person was told is over: %s", t.g.exceptions[c.key].kind)
		}
	}
}

// concerns says whether a change is told of: it is of the order, or of a row
// that belongs to it.
func (t *teller) concerns(c *rowChange) bool {
	if c.key.merchant != t.order.key.merchant {
		return false
	}
	switch c.kind {
	case rowPayin, rowPayout, rowSend:
		return c.key.id == t.order.key.id
	case rowBalance, rowNotice, rowClaim:
		return false
	case rowPosting:
		e := t.g.entries[c.key]
		return e != nil && e.order == t.order
	default:
		return t.g.orderOf(c) == t.order.key.id.String()
	}
}

func (t *teller) tellOrder(c *rowChange) {
	was := t.was
	t.was = *c
	if c.op == rowAdded {
		t.linef(c.n[5], "%s created: %d cents", c.t[0], t.order.amount)
		if url := c.t[5]; url != "" {
			fmt.Fprintf(t.text, ", news to %s", url)
		}
		return
	}
	t.linef(c.n[5], "%s version %d", c.t[0], c.n[0])
	if t.order.kind == payin {
		for i, name := range []string{"", "paid", "refunded"} {
			if name != "" && c.n[i] != was.n[i] {
				fmt.Fprintf(t.text, ", %s %d", name, c.n[i])
			}
		}
		if c.n[7] != 0 {
			t.text.WriteString(", late")
		}
	} else {
		fmt.Fprintf(t.text, ", step %s", c.t[3])
		if c.n[1] != 0 {
			fmt.Fprintf(t.text, ", returned %d", c.n[1])
		}
		if c.n[2] != 0 {
			fmt.Fprintf(t.text, ", asked %d times", c.n[2])
		}
		if c.other != (rowID{}) {
			fmt.Fprintf(t.text, ", in hand of %s", short(c.other))
		}
	}
	if c.n[6] != 0 {
		t.text.WriteString(", news ended")
	}
	if c.n[4] != 0 {
		fmt.Fprintf(t.text, ", due %s", time.UnixMicro(c.n[4]).UTC().Format(storyTime))
	}
	if c.t[1] != "" {
		fmt.Fprintf(t.text, ", %s", c.t[1])
	}
}

func (t *teller) tellDelivery(c *rowChange) {
	if c.op == rowDeleted {
		t.linef(0, "delivery of event %d is removed", c.n[0])
		return
	}
	t.linef(c.n[4], "delivery of event %d: %s, %d attempts", c.n[0], c.t[0], c.n[1])
	if c.n[3] != 0 {
		t.text.WriteString(", in hand")
	}
	if c.n[2] != 0 {
		fmt.Fprintf(t.text, ", due %s", time.UnixMicro(c.n[2]).UTC().Format(storyTime))
	}
}

func (t *teller) tellAttempt(c *rowChange) {
	d := t.g.deliveries[c.key]
	number := d.event.number
	switch {
	case c.op == rowDeleted:
		t.linef(0, "attempt %d to deliver event %d is removed", c.n[0], number)
	case c.n[2] == 0:
		t.linef(c.n[3], "attempt %d to deliver event %d was cut off", c.n[0], number)
	default:
		t.linef(c.n[2], "attempt %d to deliver event %d: %d %s", c.n[0], number, c.n[1], c.t[0])
	}
}

// short is the end of an id, which tells it from others.
func short(id rowID) string {
	text := id.String()
	return text[len(text)-8:]
}
