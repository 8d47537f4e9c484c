package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// attemptsCompared is how many events' attempts are compared: those are read
// one event at a time.
const attemptsCompared = 500

// compareAttempts holds what the gateway says of its attempts against the
// receivers' journals: one that it calls delivered must have been, and none
// that a receiver took is missing.
func (j *judge) compareAttempts(ctx context.Context, b *books) error {
	taken := map[string]int{}
	for _, d := range b.deliveries {
		taken[d.EventID]++
	}
	compared := 0
	for _, e := range b.events {
		// Those that came once tell little.
		if compared == attemptsCompared || e.Data.WebhookURL == "" || taken[e.ID] < 2 {
			continue
		}
		compared++
		list, err := j.delivered(ctx, e)
		if err != nil {
			return err
		}
		if len(list) < taken[e.ID] || !slices.ContainsFunc(list, attempt.arrived) {
			j.blame(violation{kind: "attempts not on record", reference: e.Data.ReferenceID, id: e.Data.ID, says: []string{
				fmt.Sprintf("receivers  took %s %d times", e.ID, taken[e.ID]), fmt.Sprintf("gateway    %+v", list),
			}})
		}
	}
	j.figures.add("events whose attempts were compared", "", compared)
	return nil
}

// attempt is a time that the gateway says it sent an event.
type attempt struct {
	Number  int
	Status  int
	EndedAt string
}

func (a attempt) arrived() bool { return a.Status >= 200 && a.Status <= 299 }

// delivered reads an event's attempts. A receiver that died with its answer in
// its hand has the event while the gateway does not know: it sends it again.
func (j *judge) delivered(ctx context.Context, e event) (list []attempt, err error) {
	for range readTries {
		var page struct{ Data []attempt }
		if err := j.ask.read(ctx, j.base+"/events/"+e.ID+"/attempts", &page); err != nil {
			return nil, err
		}
		if list = page.Data; slices.ContainsFunc(list, attempt.arrived) {
			return list, nil
		}
		j.advance(ctx, time.Hour)
		if !wait(ctx, settleLook) {
			return nil, context.Cause(ctx)
		}
	}
	return list, nil
}

// bugs are words that a log never says unless something is wrong that no fault
// explains.
var bugs = []string{"panic", "fatal error", "DATA RACE", "code=internal_error"}

// readLogs blames what logs should never say.
func (o *ordeal) readLogs() error {
	for _, p := range o.processes {
		text, err := os.ReadFile(p.log())
		if err != nil {
			return err
		}
		for _, word := range bugs {
			if at := strings.Index(string(text), word); at >= 0 {
				said := string(text[max(0, at-500):min(len(text), at+2000)])
				o.blame(violation{kind: "bug in a log", says: []string{p.label + " says " + word + ":", said}})
			}
		}
	}
	return nil
}
