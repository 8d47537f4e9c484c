package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// attemptsCompared bounds the events whose attempts are compared: each takes a
// request.
const attemptsCompared = 500

// attemptsListed is how many attempts of an event the gateway lists at most.
const attemptsListed = 100

// attempt is one attempt of a delivery, as the gateway lists it.
type attempt struct {
	Number  int
	Status  int
	EndedAt string
}

func (a attempt) arrived() bool { return a.Status >= 200 && a.Status <= 299 }

// compareAttempts compares the gateway's attempts with the receivers' journals: none
// that a receiver recorded is missing, and the last one succeeded.
func (c *collector) compareAttempts(ctx context.Context, b *records) error {
	recorded := map[string]int{}
	for _, d := range b.deliveries {
		recorded[d.EventID]++
	}
	compared := int64(0)
	for _, e := range b.events {
		// Events that arrived once are not compared.
		if compared == attemptsCompared || e.Data.WebhookURL == "" || recorded[e.ID] < 2 {
			continue
		}
		compared++
		list, err := c.attempts(ctx, e)
		if err != nil {
			return err
		}
		if len(list) < min(recorded[e.ID], attemptsListed) || !slices.ContainsFunc(list, attempt.arrived) {
			c.report(violation{kind: "attempt missing", reference: e.Data.ReferenceID, id: e.Data.ID, details: []string{
				fmt.Sprintf("receivers  recorded %s %d times", e.ID, recorded[e.ID]), fmt.Sprintf("gateway    %+v", list),
			}})
		}
	}
	c.totals.add("events whose attempts were compared", "", compared)
	return nil
}

// attempts reads an event's attempts. If a receiver died before its answer was sent,
// the receiver has recorded the event and the gateway sends it again.
func (c *collector) attempts(ctx context.Context, e event) (list []attempt, err error) {
	for range readTries {
		var page struct{ Data []attempt }
		if err := c.api.read(ctx, c.base+"/events/"+e.ID+"/attempts", &page); err != nil {
			return nil, err
		}
		if list = page.Data; slices.ContainsFunc(list, attempt.arrived) {
			return list, nil
		}
		c.advanceClock(ctx, time.Hour)
		if !wait(ctx, finalLook) {
			return nil, context.Cause(ctx)
		}
	}
	return list, nil
}

// bugs are words that a log contains only after a bug: no fault explains them.
var bugs = []string{"panic", "fatal error", "DATA RACE", "code=internal_error"}

// checkLogs reports logs that contain them.
func (r *run) checkLogs() error {
	for _, p := range r.processes {
		text, err := os.ReadFile(p.log())
		if err != nil {
			return err
		}
		for _, word := range bugs {
			if at := strings.Index(string(text), word); at >= 0 {
				around := string(text[max(0, at-500):min(len(text), at+2000)])
				r.report(violation{kind: "bug in a log", details: []string{p.label + " logs " + word + ":", around}})
			}
		}
	}
	return nil
}
