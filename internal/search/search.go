// Package search keeps the index by which orders are found by personal data.
//
// The index is written behind the commits, so that none of them waits for it. New orders are
// indexed from what the commits of this process report. Orders that a process did not index
// before it ended are found by position: a sweep reads all orders of each merchant in the order of
// their ids, once, and remembers how far it is. An order is committed later than its id was
// made, so the position stays behind the newest ids by more than a commit can take, by the slowest
// clock of all processes. One that begins with a slower clock, or ends, moves it back.
package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/porteira/porteira/internal/commit"
	"github.com/porteira/porteira/internal/env"
	"github.com/porteira/porteira/internal/payment"
	"github.com/porteira/porteira/internal/store"
	"github.com/porteira/porteira/internal/write"
)

// Bounds of one run, of new orders and of the sweep each. A run begins every half second,
// so the index keeps up with 1,000 orders per second; beyond that, it catches up later.
const (
	ordersPerRun    = 500
	ordersPerCommit = 100
	merchantsPerRun = 50
)

// safeAge is the age of an order's id at which its commit has surely ended: requests end
// after 25 s, and a commit of unknown outcome is retried for less than a minute.
const safeAge = 5 * time.Minute

// sweepEvery is the time between two sweeps.
const sweepEvery = time.Minute

// Options configure a Service.
type Options struct {
	Store  *store.Store
	Writer *write.Writer
	Env    env.Env
}

// Service keeps the index. Created and CatchUp are safe for concurrent use; Index is the step
// of one worker.
type Service struct {
	Options

	mu      sync.Mutex
	fresh   map[list]span // new orders that are not indexed yet
	restart bool          // the next sweep begins now, and goes up to now
	ended   time.Time     // the earliest clock of processes that have ended; zero if none has

	sweep sweep
	turn  list // where the next run begins
}

// list names all pay-ins or all payouts of a merchant.
type list struct {
	merchant  payment.ID
	operation payment.Operation
}

func (l list) compare(other list) int {
	return cmp.Or(payment.CompareIDs(l.merchant, other.merchant), strings.Compare(string(l.operation), string(other.operation)))
}

// span is the half-open range of ids (after, last].
type span struct{ after, last payment.ID }

// New returns a Service. Its first sweep goes up to now: it indexes what was created while
// no process ran, or before one was killed.
func New(o Options) *Service {
	return &Service{Options: o, fresh: map[list]span{}, restart: true}
}

// Created notes new orders, which are indexed soon. It does not block.
func (s *Service) Created(orders []store.NewOrder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range orders {
		o := &orders[i]
		s.note(list{o.Merchant, o.Operation}, span{o.ID.Before(), o.ID})
	}
}

// note adds ids to what is not indexed. The caller holds the lock.
func (s *Service) note(l list, ids span) {
	if v, ok := s.fresh[l]; ok {
		if bytes.Compare(v.after[:], ids.after[:]) < 0 {
			ids.after = v.after
		}
		if bytes.Compare(v.last[:], ids.last[:]) > 0 {
			ids.last = v.last
		}
	}
	s.fresh[l] = ids
}

// CatchUp makes the next sweep begin now and go up to now: another process has ended, and may
// not have indexed its last orders. clock is what it had at its last heartbeat.
func (s *Service) CatchUp(clock time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restart, s.ended = true, earliest(s.ended, clock)
}

// earliest is the earlier of two times, of which a zero one does not count.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Index is the step of the worker. It never requests an immediate further run: the index must
// not take the database from the requests.
func (s *Service) Index(ctx context.Context) (int, error) {
	return 0, errors.Join(s.indexFresh(ctx), s.indexRest(ctx))
}

// indexFresh indexes new orders that commits of this process have reported, in the order of
// their ids, and a share of each list in turn.
func (s *Service) indexFresh(ctx context.Context) error {
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = map[list]span{}
	s.mu.Unlock()
	var lists []list
	for l := range fresh {
		lists = append(lists, l)
	}
	slices.SortFunc(lists, list.compare)
	first, _ := slices.BinarySearchFunc(lists, s.turn, list.compare)
	lists = slices.Concat(lists[first:], lists[:first])
	left := ordersPerRun
	share := max(ordersPerCommit, left/max(1, len(lists)))
	var errs []error
	for i, l := range lists {
		if left <= 0 { // the others first in the next run
			s.turn = l
			s.keep(lists[i:], fresh)
			break
		}
		v := fresh[l]
		next, did, err := s.index(ctx, l, v, share, payment.ID{})
		errs = append(errs, err)
		left -= did
		if next != v.last {
			s.keep(lists[i:i+1], map[list]span{l: {next, v.last}})
		}
	}
	return errors.Join(errs...)
}

// keep keeps what a run has not indexed, beside what was reported meanwhile.
func (s *Service) keep(lists []list, of map[list]span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range lists {
		s.note(l, of[l])
	}
}

// index indexes up to limit orders of a list, and returns the id after which it goes on:
// v.last if it has done all. If safe is not zero, it moves the position of the list, to safe
// at most.
func (s *Service) index(ctx context.Context, l list, v span, limit int, safe payment.ID) (next payment.ID, did int, err error) {
	next = v.after
	for did < limit {
		n := min(ordersPerCommit, limit-did)
		rows, err := s.Store.SearchedOrders(ctx, l.merchant, l.operation, next, v.last, n)
		if err != nil {
			return next, did, store.Problem(err)
		}
		if len(rows) == 0 {
			return v.last, did, nil
		}
		last := rows[len(rows)-1].ID
		op := &indexOrders{merchant: l.merchant}
		if !safe.IsZero() {
			op.operation, op.position = l.operation, earlier(last, safe)
		}
		for i := range rows {
			if err := s.add(ctx, op, l, &rows[i], !safe.IsZero()); err != nil {
				return next, did, err
			}
		}
		if len(op.terms)+len(op.damaged) > 0 || !op.position.IsZero() {
			if err := s.Writer.Do(ctx, op); err != nil {
				return next, did, err
			}
		}
		did += len(rows)
		next = last
		if len(rows) < n {
			return v.last, did, nil
		}
	}
	return next, did, nil
}

func earlier(a, b payment.ID) payment.ID {
	if payment.CompareIDs(a, b) > 0 {
		return b
	}
	return a
}

// add adds the terms of an order. One that cannot be decrypted is parked with a case when the
// sweep passes it: it delays no other.
func (s *Service) add(ctx context.Context, op *indexOrders, l list, o *store.Searched, park bool) error {
	if o.Damaged {
		if !park {
			return nil
		}
		known, err := s.Store.HasOpenCase(ctx, l.merchant, o.ID, store.CaseDamaged)
		if err == nil && !known {
			op.damaged = append(op.damaged, store.DamagedCase(l.merchant, o.ID, string(l.operation)+"s"))
		}
		return store.Problem(err)
	}
	terms := []struct {
		field store.SearchField
		value string
	}{{store.SearchCustomerDocument, payment.NormalDocument(o.Document)}, {store.SearchCustomerEmail, payment.NormalEmail(o.Email)}}
	if l.operation == payment.OperationPayout {
		terms[0].field = store.SearchBeneficiaryDocument
		terms[1].field, terms[1].value = store.SearchPIXKey, o.PIXKey
	}
	for _, v := range terms {
		if v.value != "" {
			op.terms = append(op.terms, term{o.ID, s.Store.SearchTerm(l.merchant, v.field, v.value)})
		}
	}
	return nil
}

// indexOrders is the operation that adds orders to the index.
type indexOrders struct {
	merchant  payment.ID
	terms     []term
	damaged   []store.Case
	operation payment.Operation
	position  payment.ID // zero if it stays
}

type term struct {
	order payment.ID
	hash  store.SearchTerm
}

// Merchant implements [write.Operation].
func (v *indexOrders) Merchant() payment.ID { return v.merchant }

// Class implements [write.Operation].
func (v *indexOrders) Class() commit.Class { return commit.Background }

// Needs implements [write.Operation].
func (v *indexOrders) Needs(*store.Needs) {}

// Decide implements [write.Operation].
func (v *indexOrders) Decide(_ *store.Loaded, c *store.Changes) error {
	for _, t := range v.terms {
		c.AddSearchTerm(v.merchant, t.order, t.hash)
	}
	for i := range v.damaged {
		c.OpenCase(v.damaged[i])
	}
	if !v.position.IsZero() {
		c.SetSearchPosition(v.merchant, v.operation, v.position)
	}
	return nil
}
