package simulate

import (
	"strings"
	"testing"
	"time"

	"github.com/porteira/porteira/internal/processor"
)

// wind brings everything of a furnished shop to its end.
func (v *shop) wind() {
	v.t.Helper()
	v.send(bankSays(processor.TransferPaid)) // out-new
	v.clock.Advance(time.Minute)
	v.ask(processor.TransferReport{Lookup: processor.Found, State: processor.TransferPaid, EndToEndID: "E2", Returned: 1}) // out-sent
	v.clock.Advance(2 * time.Hour)
	if _, err := v.flow.ExpirePayins(v.t.Context(), 10); err != nil {
		v.t.Fatal(err)
	}
	v.deliver(200)
	notices, err := v.flow.ClaimNotices(v.t.Context(), 10)
	v.must(err)
	for _, n := range notices {
		v.must(v.flow.FinishNotice(v.t.Context(), n))
	}
	v.sound()
}

// clone is a copy of books that a test may spoil.
func (b *books) clone() books {
	c := books{
		transfers: append([]bankTransfer(nil), b.transfers...),
		payments:  append([]bankPayment(nil), b.payments...),
		received:  append([]received(nil), b.received...),
	}
	for _, a := range b.acks {
		copied := *a
		c.acks = append(c.acks, &copied)
	}
	return c
}

func (b *books) ack(reference string) *ack {
	for _, a := range b.acks {
		if a.reference == reference {
			return a
		}
	}
	return nil
}

// line is the bank's transfer of a payout.
func (b *books) line(reference string) *bankTransfer {
	for i := range b.transfers {
		if b.transfers[i].externalID == b.ack(reference).externalID {
			return &b.transfers[i]
		}
	}
	return nil
}

// lies are what the other books could say; each breaks at least the rule that
// it names.
var lies = []struct {
	name    string
	settled bool // it is told at the end
	rule    string
	says    string
	tell    func(b *books)
}{
	{"acknowledged, and lost", false, "I2", "is not there", func(b *books) {
		b.acks = append(b.acks, &ack{kind: payin, merchant: b.acks[0].merchant, reference: "lost", id: b.acks[0].id})
	}},
	{"another amount was acknowledged", false, "I2", "acknowledged as", func(b *books) { b.ack("in-open").amount++ }},
	{"another external id was acknowledged", false, "I2", "acknowledged as", func(b *books) { b.ack("out-new").externalID = "x" }},
	{"another id was acknowledged", false, "I2", "acknowledged as", func(b *books) { b.ack("out-new").id = b.ack("out-done").id }},
	{"cancelling was acknowledged", false, "I2", "cancelling", func(b *books) { b.ack("out-new").canceled = true }},
	{"a reference with two ids", false, "I5", "was acknowledged as", func(b *books) {
		b.acks = append(b.acks, &ack{kind: payout, merchant: b.acks[0].merchant, reference: "out-new", amount: 900, webhookURL: hookURL, id: b.acks[0].id})
	}},
	{"an order that nobody asked for", false, "I5", "nobody asked", func(b *books) { b.ack("in-open").reference = "other" }},
	{"an amount that nobody asked for", false, "I5", "nobody asked", func(b *books) { a := b.ack("in-open"); a.amount, a.id = 1, "" }},
	{"a transfer of nobody's", false, "I3", "of nobody's", func(b *books) { b.transfers[0].externalID = "x" }},
	{"two transfers", false, "I3", "two transfers", func(b *books) { b.transfers = append(b.transfers, *b.line("out-done")) }},
	{"another amount was sent", false, "I3", "the bank sent 2001 of 2000", func(b *books) { b.line("out-done").amount++ }},
	{"completed, and never sent", false, "I3", "no transfer", func(b *books) { b.transfers = b.transfers[1:] }},
	{"completed, and failed", false, "I3", "the bank says failed", func(b *books) { b.line("out-done").state = "failed" }},
	{"completed, and under way", false, "I3", "the bank says processing", func(b *books) { b.line("out-done").state = "processing" }},
	{"released, and paid", false, "I3", "the bank says paid", func(b *books) {
		b.transfers = append(b.transfers, bankTransfer{b.ack("out-failed").externalID, 400, 0, "paid", "E"})
	}},
	{"paid before it was sent", false, "I3", "was never sent", func(b *books) {
		b.transfers = append(b.transfers, bankTransfer{b.ack("out-new").externalID, 900, 0, "processing", "E"})
	}},
	{"another end-to-end id", false, "I3", "end-to-end id", func(b *books) { b.line("out-done").endToEndID = "x" }},
	{"paid, and under way for ever", true, "I11", "no end", func(b *books) { b.line("out-sent").state = "paid" }},
	{"returned, and not heard of", true, "I3", "came back", func(b *books) { b.line("out-done").returned = 5 }},
	{"a receipt of no payment", false, "I9", "of no payment", func(b *books) { b.payments = b.payments[1:] }},
	{"a payment of another amount", false, "I9", "is booked as", func(b *books) { b.payments[0].amount++ }},
	{"a payment of another order", false, "I9", "is booked as", func(b *books) { b.payments[0].externalID = b.payments[1].externalID }},
	{"a payment dropped", true, "I10", "is not booked", func(b *books) { b.payments = append(b.payments, bankPayment{"Z", "x", 5, "EZ"}) }},
	{"a delivery of no event", false, "I7", "is not there", func(b *books) { b.received[0].eventID = "evt_0" }},
	{"a delivery in other words", false, "I7", "was delivered as", func(b *books) { b.received[0].body = []byte("{}") }},
	{"a delivery to another address", false, "I7", "went to", func(b *books) { b.received[0].url = "https://elsewhere.example" }},
	{"a delivery to another merchant", false, "I7", "went to", func(b *books) { b.received[0].merchant = b.acks[0].id }},
	{"a delivery that was made twice", false, "I7", "came 2 times, and 1 attempts", func(b *books) { b.received = append(b.received, b.received[0]) }},
	{"delivered, and refused", false, "I7", "no receiver took it", func(b *books) { b.received[0].answer = 500 }},
	{"delivered to nobody", false, "I7", "no receiver took it", func(b *books) { b.received = b.received[1:] }},
	{"the bank has moved more", true, "I14", "the bank has moved", func(b *books) { b.payments = append(b.payments, bankPayment{"Z", "x", 5, "EZ"}) }},
}

// What the other books say and the gateway's does not is reported.
func TestLiesAreReported(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		v.furnish()
		for _, early := range []bool{true, false} {
			for _, lie := range lies {
				// What must hold at any time must hold at the end, too.
				if lie.settled && early {
					continue
				}
				b := v.books.clone()
				lie.tell(&b)
				v.again()
				expect(v.t, lie.name, compare(b, v.book, lie.settled), lie.rule, lie.says)
			}
			if early {
				v.clock.Advance(time.Second)
				v.deliver(200)
			}
		}
	})
}

// What the gateway's book alone could have wrong, and its rows do not show.
func TestBookHeldAgainstTheOthers(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		v.furnish()
		v.book.cameIn[0].order = nil
		expect(v.t, "a payment kept from its order", compare(v.books, v.book, false), "I10", "is not booked for it")
		o := v.book.references[orderName{rowID(v.m.ID), payout, "out-done"}]
		o.claimed = true
		expect(v.t, "an order in hand", compare(v.books, v.book, true), "I11", "in hand: true")
		o.events[0].delivery.claimed = true
		expect(v.t, "a delivery in hand", compare(v.books, v.book, true), "I11", "is in hand")
	})
}

// What is still under way is reported at the end, and nothing once it is not.
func TestSettledBooks(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		v.furnish()
		found := compare(v.books, v.book, true)
		for _, words := range []string{"no end", "is still open", "still to be delivered", "is not applied"} {
			expect(v.t, words, found, "I11", words)
		}
		v.wind()
		for _, broken := range compare(v.books, v.book, true) {
			v.t.Errorf("%+v\n%s", broken, v.book.story(broken.order))
		}
	})
}

// A story is found by each name of an order, and tells what happened to it.
func TestStory(t *testing.T) {
	t.Parallel()
	eachShop(t, func(v *shop) {
		v.furnish()
		v.wind()
		a := v.books.ack("out-sent")
		story := v.book.story(a.id)
		if story == "" || story != v.book.story(a.externalID) || story != v.book.story("out-sent") {
			v.t.Fatalf("not one story:\n%s\n%s\n%s", story, v.book.story(a.externalID), v.book.story("out-sent"))
		}
		at := 0
		for _, words := range []string{
			"PENDING created: 700 cents, news to https://shop.example/hook", "entry payout_held: available -700 = ", "send 1: intent", "send 1: accepted",
			"send 1: paid", "COMPLETED version 3, step done", "entry payout_paid: held -700 = ", "entry payout_returned: ", "payout.completed, version 3",
			"payout.returned, version 4", "attempt 1 to deliver", "delivered, 1 attempts", ": 200",
		} {
			i := strings.Index(story[at:], words)
			if i < 0 {
				v.t.Fatalf("no %q after the first %d characters of\n%s", words, at, story)
			}
			at += i
		}
		if other := v.book.story("in-paid"); !strings.Contains(other, "a person is told: overpaid 500") || !strings.Contains(other, "receipt: 10000 of 10500") {
			v.t.Errorf("the story of in-paid is\n%s", other)
		}
	})
}
