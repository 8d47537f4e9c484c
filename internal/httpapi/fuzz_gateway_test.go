package httpapi_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// FuzzGateway runs a sequence of calls of two merchants against a complete
// gateway, and compares every answer with a model: nothing is 5xx, a reference
// creates one order, no merchant sees another's data, amounts never change and
// balances add up. run.step decodes the bytes.
func FuzzGateway(f *testing.F) {
	for _, script := range scripts {
		f.Add([]byte(script))
	}
	h := newInstancePool(f)
	f.Fuzz(func(t *testing.T, script []byte) {
		p := &run{t: t, instance: h.instance(t), script: script, model: newModel()}
		for range stepsMax {
			if len(p.script) == 0 {
				break
			}
			p.step()
		}
		must(t, p.instance.work()) // so that no payout is left over for the next run
		p.every((*modelOrder).send)
		p.pass(2 * time.Second)
		p.checkEverything()
	})
}

// stepsMax bounds a run.
const stepsMax = 16

// scripts are the seeds: numbers of actions, each followed by its bytes.
var scripts = []string{
	"\x00\x00\x00\x01\x00\x02\x00", "\x00\x00\x00\x02\x00\x08\x00\x00\x00\x07\x00", "\x00\x01\x01\x21\x03\x08\x00\x00\x02\x08\x00\x00\x01\x07\x01",
	"\x01\x00\x00\x01\x01\x0a\x0b\x00\x07\x00", "\x01\x00\x00\x02\x00\x0a\x09\x00\x02\x07\x00\x0c\x00", "\x01\x00\x00\x03\x00\x03\x00\x02\x00\x05\x00",
	"\x00\x00\x00\x02\x00\x08\x00\x00\x00\x08\x00\x03\x00\x01\x00\x01\x03\x00\x08\x00\x05\x00\x08\x00\x04\x00\x07\x00\x0c\x00",
	"\x00\x00\x02\x02\x00\x00\x00\x02\x02\x01\x00\x00\x02\x03\x00\x06\x00\x00\x0b\x03\x06\x00\x05",
	// A dispute of money that was paid out becomes debt, which later receipts repay.
	"\x00\x00\x00\x04\x00\x08\x00\x00\x00\x01\x00\x00\x03\x00\x01\x00\x01\x04\x00\x08\x00\x03\x00\x07\x00\x00\x00\x01\x02\x00\x08\x01\x00\x00\x07\x00\x08\x00\x05\x00\x08\x00\x04\x00",
	// Two payments, each disputed; one dispute is lost and reversed.
	"\x00\x00\x00\x02\x00\x08\x00\x00\x00\x08\x00\x03\x00\x08\x00\x00\x00\x08\x00\x03\x00\x08\x00\x05\x00\x08\x00\x04\x00",
	"\x00\x00\x01\x02\x00\x08\x00\x00\x04\x08\x00\x03\x00\x08\x00\x00\x00\x08\x00\x04\x00", "\x00\x01\x03\x43\x00\x0b\x04\x08\x00\x00\x01\x0c\x01\x04\x00",
}

// run is one sequence of calls.
type run struct {
	t        *testing.T
	instance *instance
	script   []byte
	model    [2]*modelMerchant
	orders   []*modelOrder // of both, oldest first
	sent     []sentRequest
}

// sentRequest is a request to create an order that was sent, accepted or not.
type sentRequest struct {
	actor int
	kind  string
	modelRequest
}

// pick takes a byte of the script, below n.
func (p *run) pick(n int) int {
	if len(p.script) == 0 || n == 0 {
		return 0
	}
	b := int(p.script[0])
	p.script = p.script[1:]
	return b % n
}

// order picks an existing order; nil if there is none of the kind.
func (p *run) order(kind string) *modelOrder {
	var some []*modelOrder
	for _, o := range p.orders {
		if kind == "" || o.kind == kind {
			some = append(some, o)
		}
	}
	if i := p.pick(len(some)); len(some) > 0 {
		return some[i]
	}
	return nil
}

func (p *run) every(do func(*modelOrder)) {
	for _, o := range p.orders {
		do(o)
	}
}

// step makes the next call.
func (p *run) step() {
	switch action := p.pick(13); action {
	case 0, 1:
		kind, make := "payin", payinRequest
		if action == 1 {
			kind, make = "payout", payoutRequest
		}
		p.create(p.pick(2), kind, make(fmt.Sprint("r", p.pick(4)), p.pick(256), p.pick(16)), 0)
	case 2:
		if len(p.sent) > 0 {
			r := p.sent[p.pick(len(p.sent))]
			p.create(r.actor, r.kind, r.modelRequest, 1+p.pick(8))
		}
	case 3:
		p.cancel(p.order(""))
	case 4:
		p.read(p.order(""))
	case 5:
		p.readForeign(p.order(""))
	case 6:
		p.list(p.pick(2), []string{"payin", "payout"}[p.pick(2)], p.pick(256))
	case 7:
		p.balance(p.pick(2))
	case 8:
		p.force(p.order("payin"), p.pick(6), p.pick(6))
	case 9:
		p.end(p.order("payout"), p.pick(3))
	case 10:
		must(p.t, p.instance.work())
		p.every((*modelOrder).send)
	case 11:
		p.pass([]time.Duration{time.Second, time.Minute, time.Hour, 25 * time.Hour, 40 * 24 * time.Hour}[p.pick(5)])
	default:
		p.events(p.pick(2))
	}
}

// create sends a request in one of several spellings.
func (p *run) create(actor int, kind string, r modelRequest, way int) {
	p.sent = append(p.sent, sentRequest{actor, kind, r})
	want := p.model[actor].create(actor, kind, r)
	a := p.instance.do(actor, http.MethodPost, "/"+kind, r.text(way))
	p.want(a, want.status, want.code)
	if want.code == "reference_conflict" {
		var document struct{ Errors []struct{ Field string } }
		p.decode(a, &document)
		var named []string
		for _, e := range document.Errors {
			named = append(named, e.Field)
		}
		if !slices.Equal(named, want.differing) {
			p.t.Fatalf("the conflict names %q, want %q", named, want.differing)
		}
	}
	if replayed := a.header.Get("Idempotency-Replayed"); (replayed == "true") != (want.order != nil && !want.fresh) {
		p.t.Fatalf("%s %s: Idempotency-Replayed is %q", kind, r.reference, replayed)
	}
	if want.order == nil {
		return
	}
	if want.fresh {
		p.orders = append(p.orders, want.order)
		p.first(want.order, a)
	}
	p.compare(want.order, a.body)
}

// first records what an order must always show.
func (p *run) first(o *modelOrder, a answer) {
	p.decode(a, &o.shown)
	o.id, _ = o.shown["id"].(string)
	for _, other := range p.orders {
		if other != o && (other.id == o.id || other.shown["externalId"] == o.shown["externalId"]) {
			p.t.Fatalf("two orders have the ids of %s", a.body)
		}
	}
	for name := range o.shown {
		if slices.Contains([]string{"status", "version", "updatedAt"}, name) {
			delete(o.shown, name)
		}
	}
	if o.kind == "payin" {
		var err error
		o.expires, err = time.Parse(time.RFC3339, fmt.Sprint(o.shown["expiresAt"]))
		must(p.t, err)
		if life := o.expires.Sub(p.instance.clock.Now()); o.sent["paymentMethod"] != "BOLETO" && life.Round(time.Second) != lifeOf(o.sent) {
			p.t.Fatalf("it expires after %v: %s", life, a.body)
		}
	}
}

// lifeOf is when an order without a due date expires, after its creation.
func lifeOf(sent map[string]any) time.Duration {
	if seconds, ok := sent["expiresIn"].(int64); ok {
		return time.Duration(seconds) * time.Second
	}
	return 24 * time.Hour
}

// compare compares an order, as the API shows it, with the model.
func (p *run) compare(o *modelOrder, body string) {
	p.t.Helper()
	var is map[string]any
	if err := json.Unmarshal([]byte(body), &is); err != nil {
		p.t.Fatalf("%v: %s", err, body)
	}
	for name, value := range o.shown {
		if !reflect.DeepEqual(is[name], value) && name != "card" {
			p.t.Fatalf("%s was %v and is %v", name, value, is[name])
		}
	}
	amount := any(float64(o.amount))
	if o.kind == "payout" {
		amount = strconv.FormatInt(o.amount, 10)
	}
	paid, _ := is["paidAmount"].(float64)
	if is["status"] != o.status || is["amount"] != amount || is["referenceId"] != o.reference || int64(paid) != o.paid || is["currency"] != "BRL" {
		p.t.Fatalf("the order is %s; want %s, paid %d of %d", body, o.status, o.paid, o.amount)
	}
	if version, _ := is["version"].(float64); version != math.Trunc(version) || int(version) != 1+len(o.events) {
		p.t.Fatalf("version %v after %q", is["version"], o.events)
	}
	if is["customer"] != nil || is["items"] != nil || is["beneficiary"] != nil {
		p.t.Fatalf("personal data is shown: %s", body)
	}
}

func (p *run) want(a answer, status int, code string) {
	p.t.Helper()
	got := ""
	if a.status >= 400 {
		got = a.text("code")
	}
	if a.status != status || got != code {
		p.t.Fatalf("answered with %d %s, want %d %s", a.status, a.body, status, code)
	}
}

func (p *run) decode(a answer, into any) {
	p.t.Helper()
	if err := json.Unmarshal([]byte(a.body), into); err != nil {
		p.t.Fatalf("%v: %s", err, a.body)
	}
}

func (o *modelOrder) path() string { return "/" + o.kind + "/" + o.id }

func (p *run) cancel(o *modelOrder) {
	if o == nil {
		return
	}
	a := p.instance.do(o.actor, http.MethodPost, o.path()+"/cancel", "")
	if !o.cancel() {
		p.want(a, http.StatusConflict, "invalid_state")
		return
	}
	p.want(a, http.StatusOK, "")
	p.compare(o, a.body)
}

func (p *run) read(o *modelOrder) {
	if o == nil {
		return
	}
	a := p.instance.do(o.actor, http.MethodGet, o.path(), "")
	p.want(a, http.StatusOK, "")
	p.compare(o, a.body)
}

// readForeign checks that the other merchant cannot read or cancel an order: it
// looks like one that does not exist.
func (p *run) readForeign(o *modelOrder) {
	if o == nil {
		return
	}
	const unknownID = "019ca9a0-7c00-7c41-8f59-1f2e3d4c5b6a"
	for _, call := range [][2]string{{http.MethodGet, ""}, {http.MethodPost, "/cancel"}} {
		foreign := p.instance.do(1-o.actor, call[0], o.path()+call[1], "")
		unknown := p.instance.do(1-o.actor, call[0], "/"+o.kind+"/"+unknownID+call[1], "")
		p.want(foreign, http.StatusNotFound, "not_found")
		blank := func(a answer) string { return strings.ReplaceAll(a.body, a.text("requestId"), "") }
		if blank(foreign) != blank(unknown) || foreign.status != unknown.status {
			p.t.Fatalf("a foreign order is answered with %s, an unknown one with %s", foreign.body, unknown.body)
		}
	}
	p.want(p.instance.do(-1, http.MethodGet, o.path(), ""), http.StatusUnauthorized, "unauthorized")
}

// list reads all pages of a list, with a filter.
func (p *run) list(actor int, kind string, filter int) {
	q := url.Values{"limit": {strconv.Itoa(1 + filter%3)}}
	selected := func(*modelOrder) bool { return true }
	switch filter / 3 % 5 {
	case 1:
		statuses := []string{"PENDING", "CANCELED", "FAILED"}
		q.Set("status", statuses[filter/15%3])
		selected = func(o *modelOrder) bool { return o.status == q.Get("status") }
	case 2:
		q.Set("referenceId", fmt.Sprint("r", filter/15%4))
		selected = func(o *modelOrder) bool { return o.reference == q.Get("referenceId") }
	case 3:
		if kind == "payin" {
			q.Set("paymentMethod", []string{"PIX", "CREDIT_CARD", "BOLETO"}[filter/15%3])
			selected = func(o *modelOrder) bool { return o.sent["paymentMethod"] == q.Get("paymentMethod") }
		}
	}
	var want []*modelOrder
	for _, o := range slices.Backward(p.model[actor].orders) {
		if o.kind == kind && selected(o) {
			want = append(want, o)
		}
	}
	for {
		a := p.instance.do(actor, http.MethodGet, "/"+kind+"?"+q.Encode(), "")
		p.want(a, http.StatusOK, "")
		var page struct {
			Data       []json.RawMessage
			NextCursor *string
		}
		p.decode(a, &page)
		if len(page.Data) > len(want) || page.NextCursor == nil && len(page.Data) < len(want) {
			p.t.Fatalf("%d orders should follow, this page has %s", len(want), a.body)
		}
		for i, entry := range page.Data {
			p.compare(want[i], string(entry))
		}
		want = want[len(page.Data):]
		if page.NextCursor == nil {
			return
		}
		q.Set("cursor", *page.NextCursor)
	}
}

func (p *run) balance(actor int) {
	m := p.model[actor]
	a := p.instance.do(actor, http.MethodGet, "/balance", "")
	p.want(a, http.StatusOK, "")
	var is map[string]any
	p.decode(a, &is)
	want := map[string]any{
		"currency": "BRL", "available": float64(m.available), "pending": 0.0, "held": float64(m.held),
		"disputed": float64(m.disputed), "unapplied": float64(m.unapplied), "owed": float64(m.owed),
	}
	if !maps.Equal(is, want) {
		p.t.Fatalf("the balance is %s, want %v", a.body, want)
	}
}

// force makes something happen to a pay-in.
func (p *run) force(o *modelOrder, action, size int) {
	if o == nil {
		return
	}
	name, body := []string{"pay", "expire", "fail", "dispute", "win", "lose"}[action], ""
	amount := []int64{0, 1, o.amount - 1, o.amount + 1, 2 * o.amount, modelMoney + 1}[size]
	if name != "pay" || amount == 0 {
		amount = 0
	} else {
		body = fmt.Sprintf(`{"amount":%d}`, amount)
	}
	a := p.instance.do(-1, http.MethodPost, "/sandbox/payin/"+o.id+"/"+name, body)
	switch {
	case amount > modelMoney:
		p.want(a, http.StatusUnprocessableEntity, "validation_failed")
	case !o.act(name, amount):
		p.want(a, http.StatusConflict, "invalid_state")
	default:
		p.want(a, http.StatusNoContent, "")
	}
	p.read(o)
}

// end makes something happen to a payout, after all pending ones were sent.
func (p *run) end(o *modelOrder, action int) {
	if o == nil {
		return
	}
	name := []string{"complete", "fail", "return"}[action]
	a := p.instance.do(-1, http.MethodPost, "/sandbox/payout/"+o.id+"/"+name, "")
	p.every((*modelOrder).send)
	if !o.end(name) {
		p.want(a, http.StatusConflict, "invalid_state")
	} else {
		p.want(a, http.StatusNoContent, "")
	}
	p.read(o)
}

func (p *run) pass(d time.Duration) {
	must(p.t, p.instance.pass(d))
	p.every(func(o *modelOrder) { o.pass(p.instance.clock.Now()) })
}

// events checks that a merchant has all events of each of its orders, in order, and
// no others.
func (p *run) events(actor int) {
	left := map[string][]string{}
	count := 0
	for _, o := range p.model[actor].orders {
		left[o.id] = o.events
		count += len(o.events)
	}
	cursor := ""
	for {
		a := p.instance.do(actor, http.MethodGet, "/events?limit=5"+cursor, "")
		p.want(a, http.StatusOK, "")
		var page struct {
			Data []struct {
				Type string
				Data struct{ ID string }
			}
			NextCursor string
		}
		p.decode(a, &page)
		for _, e := range page.Data {
			if strings.HasPrefix(e.Type, "dispute.") {
				continue // of no order
			}
			if next := left[e.Data.ID]; len(next) == 0 || next[0] != e.Type {
				p.t.Fatalf("event %s of %s, want one of %q", e.Type, e.Data.ID, next)
			}
			left[e.Data.ID] = left[e.Data.ID][1:]
			count--
		}
		if len(page.Data) == 0 {
			break
		}
		cursor = "&cursor=" + url.QueryEscape(page.NextCursor)
	}
	if count != 0 {
		p.t.Fatalf("%d events are missing: %q", count, left)
	}
}

func (p *run) checkEverything() {
	for actor := range p.model {
		p.balance(actor)
		p.events(actor)
		p.list(actor, "payin", 2)
		p.list(actor, "payout", 2)
	}
	p.transfers()
}

// transfers compares the bank's ledger with the payouts: it has one transfer for
// each payout that was sent.
func (p *run) transfers() {
	for _, o := range p.orders {
		if o.kind != "payout" {
			continue
		}
		a := p.instance.do(-1, http.MethodGet, "/sandbox/processor/transfers?externalId="+fmt.Sprint(o.shown["externalId"]), "")
		p.want(a, http.StatusOK, "")
		var page struct{ Data []struct{ Amount int64 } }
		p.decode(a, &page)
		if sent := o.bank != ""; len(page.Data) > 1 || (len(page.Data) == 1) != sent || sent && page.Data[0].Amount != o.amount {
			p.t.Fatalf("a payout with status %s has the transfers %s", o.status, a.body)
		}
	}
}
