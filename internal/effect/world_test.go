package effect

// moves are the worlds that follow a world.
func (s *setup) moves(w world) (list []next) {
	if w.violation != fine {
		return nil
	}
	if v, ok := s.tick(w); ok {
		list = append(list, next{w: v, what: "tick"})
	}
	for i := range w.items {
		list = append(list, s.bankMoves(w, i)...)
	}
	switch {
	case w.r.exists:
		list = append(list, s.orderMoves(w)...)
	case w.restored && !w.frozen: // the merchant repeats its request
		v, e := w, Effect{State: Queued}
		if s.restore != "unmarked" && !s.noDoubt {
			e.Doubt, e.Gap, e.Until = true, true, base
		}
		v.r = orderOf(e)
		list = append(list, next{w: v, what: "requested again"})
	}
	list = append(list, s.claimMoves(w)...)
	list = append(list, s.deadMoves(w)...)
	if s.wanted && w.wanted {
		v := w
		v.wanted = false
		list = append(list, next{w: v, what: "the order ends"})
	}
	if s.restore != "" {
		list = append(list, s.restoreMoves(w)...)
	}
	return list
}

// tick lets time pass, unless something must happen first.
func (s *setup) tick(w world) (world, bool) {
	if w.c.phase == toSend && w.c.deadline < 0 || w.z.phase == toSend && w.z.deadline < 0 {
		return w, false
	}
	for i := range w.items {
		it := &w.items[i]
		if it.st == underWay && it.young <= 1 {
			return w, false
		}
		if it.st != absent {
			it.young, it.age = max(it.young-1, 0), min(it.age+1, max(s.b.life, s.b.back, 1))
		}
	}
	for _, r := range []*order{&w.r, &w.snap} {
		for _, t := range []*int8{&r.first, &r.until, &r.notFound} {
			if *t != none {
				*t--
			}
		}
		s.forget(r)
	}
	for _, c := range []*call{&w.c, &w.z} {
		c.deadline = max(c.deadline-1, -1)
		if c.phase != toSend {
			c.deadline = 0
		}
	}
	w.thaw = max(w.thaw-1, 0)
	return w, true
}

// bankMoves are what the bank does with an item.
func (s *setup) bankMoves(w world, i int) (list []next) {
	become := func(st int8, what string) {
		v := w
		v.items[i].st = st
		list = append(list, next{w: v, what: what})
	}
	switch it := w.items[i]; it.st {
	case underWay:
		switch {
		case s.b.asks:
			become(asking, "bank executes late")
		case s.p.Blind:
			become(paid, "bank executes late")
		default:
			become(processing, "bank executes late")
		}
		v := w
		v.items[i] = item{}
		if i == 0 {
			v.items[0], v.items[1] = v.items[1], item{}
		}
		list = append(list, next{w: v, what: "bank loses it"})
	case asking:
		switch {
		case it.ours:
			become(processing, "bank executes with consent")
		case w.r.exists:
			n := s.step(w, Input{On: Consented}, "bank asks")
			if n.w.items[i].ours = true; n.out.Action == Refuse {
				n.w.items[i] = item{st: failed, young: it.young, age: it.age} // it gives up the transfer
			}
			list = append(list, n)
		}
	case processing:
		become(paid, "bank pays")
		if s.b.refuse {
			become(failed, "bank fails")
		}
	}
	return list
}

// orderMoves are what happens to the order outside the calls.
func (s *setup) orderMoves(w world) (list []next) {
	add := func(n next) { list = append(list, n) }
	state := States[w.r.state]
	// A worker claims it, at any time: the schedules matter to no rule.
	claimable := w.c.phase == idle && state != Done && state != Review && state != Asking && state != Sending
	if claimable && !(state == Queued && (w.frozen || w.r.sends >= s.maxSends)) && !(s.p.Blind && state == Unknown && w.r.sends >= s.maxSends) {
		add(s.step(w, Input{On: Due}, "claim"))
	}
	for _, it := range w.items {
		if on := reports[it.st]; on != "" && it.st != asking && state != Done {
			add(s.step(w, Input{On: on, Other: !it.ours}, "notice"))
		}
	}
	if state == Review && w.r.until < 0 {
		list = append(list, s.decisions(w)...)
	}
	if s.withdraw && state == Queued && !w.frozen {
		add(s.step(w, Input{On: Withdraw}, "merchant"))
	}
	return list
}

// decisions are those of two people, who wait until the bank has finished.
func (s *setup) decisions(w world) (list []next) {
	for _, it := range w.items {
		if it.st == underWay || it.st == asking || it.st == processing || it.st != absent && it.young > 0 {
			return nil
		}
	}
	truth := w.truth()
	if truth == ReportPaid {
		return []next{s.step(w, Input{On: DeclarePaid}, "people")}
	}
	list = append(list, s.step(w, Input{On: DeclareFailed}, "people"))
	if truth == "" && w.r.sends < s.maxSends {
		list = append(list, s.step(w, Input{On: DeclareAbsent}, "people"))
	}
	return list
}

// claimMoves are those of the process that has the claim.
func (s *setup) claimMoves(w world) (list []next) {
	free := w
	free.c = call{}
	switch w.c.phase {
	case toLookUp:
		for _, end := range s.lookUpEnds(&w) {
			list = append(list, s.step(free, Input{On: end, All: true, Other: end == ReportFailed && w.otherFailed()}, "look-up"))
		}
		list = append(list, s.step(free, Input{On: Died}, "process"))
	case toSend:
		if w.c.deadline >= 0 {
			for _, n := range s.arrives(w) {
				n.w.c.phase, n.w.c.deadline, n.w.c.answer = answered, 0, indexOf(Events, n.answer)
				list = append(list, n)
			}
		}
		v := w
		v.c.phase, v.c.deadline, v.c.answer = answered, 0, indexOf(Events, NotSent)
		list = append(append(list, next{w: v, what: "no byte left"}), s.dies(w)...)
	case answered:
		list = append(list, s.step(free, Input{On: Events[w.c.answer], Send: int(w.c.send)}, "answer"))
		list = append(list, s.dies(w)...)
	}
	return list
}

// dies are the worlds after the process was declared dead: it is dead, or goes on unaware of it.
func (s *setup) dies(w world) (list []next) {
	v := w
	v.c = call{}
	list = append(list, s.step(v, Input{On: Died}, "process"))
	if w.z.phase == idle {
		v.z = w.c
		list = append(list, s.step(v, Input{On: Died}, "process is declared dead"))
	}
	return list
}

// deadMoves are those of a process that was declared dead, and goes on.
func (s *setup) deadMoves(w world) (list []next) {
	free := w
	free.z = call{}
	switch w.z.phase {
	case toSend:
		list = append(list, next{w: free, what: "the dead process never wakes"})
		if w.z.deadline >= 0 && (!w.z.old || s.guardless) { // its guard was passed before
			for _, n := range s.arrives(w) {
				n.w.z.phase, n.w.z.deadline, n.w.z.answer = answered, 0, indexOf(Events, n.answer)
				n.what = "dead process: " + n.what
				list = append(list, n)
			}
		}
		v := w
		v.z.phase, v.z.deadline, v.z.answer = answered, 0, indexOf(Events, NotSent)
		list = append(list, next{w: v, what: "dead process: no byte left"})
	case answered:
		on := Events[w.z.answer]
		report := on == ReportAccepted || on == ReportPaid || on == ReportFailed
		if w.r.exists && (report || !w.z.old || s.anyHistory) {
			list = append(list, s.step(free, Input{On: on, Send: int(w.z.send)}, "answer of a dead process"))
		}
		list = append(list, next{w: free, what: "answer of a dead process is lost"})
	}
	return list
}

// arrives are the worlds after a byte left, each with each answer that the bank may give.
func (s *setup) arrives(w world) (list []next) {
	add := func(w world, what string, answers ...Event) {
		for _, a := range append(answers, NoResult) {
			list = append(list, next{w: w, what: what, answer: a})
		}
	}
	add(w, "lost")
	add(w, "not now", Later)
	if s.b.refuse {
		add(w, "refused", Refused)
	}
	if first := w.items[0]; s.b.safe && first.st != absent && (s.b.life == 0 || first.age < s.b.life) {
		switch {
		case s.p.Blind:
			w.items[0].st = paid
			add(w, "repeat recognised", ReportPaid)
		case first.st >= processing:
			add(w, "repeat recognised", Known, w.truth())
		default:
			add(w, "repeat recognised", Known)
		}
		if first.st == underWay {
			w.items[0].st = processing
			add(w, "repeat executed, as the first", ReportAccepted, Known)
		}
		return list
	}
	for i := range w.items {
		if w.items[i].st != absent {
			continue
		}
		w.items[i] = item{st: underWay, young: s.b.quiet}
		add(w, "under way")
		switch {
		case s.p.Blind:
			w.items[i].st = paid
			add(w, "executed", ReportPaid)
		case s.b.asks:
			w.items[i].st = asking
			add(w, "executed", ReportAccepted)
		default:
			w.items[i].st = processing
			add(w, "executed", ReportAccepted)
		}
		return list
	}
	w.violation = thirdRequest
	add(w, "third request")
	return list
}

// reports are what the bank says about an item, by its state.
var reports = []Event{asking: ReportAccepted, processing: ReportAccepted, paid: ReportPaid, failed: ReportFailed}

// truth is the report of a complete look-up; "" for not found.
func (w *world) truth() (best Event) {
	for _, it := range w.items {
		switch on := reports[it.st]; {
		case on == ReportPaid:
			return on
		case on == ReportAccepted, best == "":
			best = on
		}
	}
	return best
}

// lookUpEnds are the possible ends of a look-up.
func (s *setup) lookUpEnds(w *world) []Event {
	truth := w.truth()
	if truth == "" {
		return []Event{NoAnswer, NotFound}
	}
	ends := []Event{NoAnswer, truth}
	lag, gone, older := false, true, false
	for _, it := range w.items {
		if it.st >= asking {
			lag, gone = lag || it.young > 0, gone && s.b.back > 0 && it.age >= s.b.back
			older = older || it.st == failed && it.young == 0
		}
	}
	if lag || gone {
		ends = append(ends, NotFound)
	}
	if lag && older && truth != ReportFailed { // it lacks the younger one
		ends = append(ends, ReportFailed)
	}
	return ends
}

// otherFailed reports whether the failed transfer is not the one with our consent.
func (w *world) otherFailed() bool {
	for _, it := range w.items {
		if it.st == failed && it.ours {
			return false
		}
	}
	return true
}
