package commit

// queue is a queue of operations with a sub-queue per key, so that a batch takes a fair
// share of each. The lane's lock guards it.
type queue[K comparable, T any] struct {
	lines   map[K][]*ticket[T]
	ring    []K // keys with waiting operations, the next one first
	waiting int
}

func newQueue[K comparable, T any]() queue[K, T] {
	return queue[K, T]{lines: map[K][]*ticket[T]{}}
}

func (q *queue[K, T]) add(key K, t *ticket[T]) {
	line := q.lines[key]
	if len(line) == 0 {
		q.ring = append(q.ring, key)
	}
	q.lines[key] = append(line, t)
	q.waiting++
}

// share moves up to most operations to batch, in rounds with an equal share for every key.
func (q *queue[K, T]) share(batch []*ticket[T], most int) []*ticket[T] {
	for full := len(batch) + most; len(batch) < full && len(q.ring) > 0; {
		share := max(1, (full-len(batch))/len(q.ring))
		for range len(q.ring) {
			if n := min(share, full-len(batch)); n > 0 {
				batch = q.takeFirst(batch, n)
			}
		}
	}
	return batch
}

// takeFirst moves up to n operations of the first key to batch, and the key to the end of
// the next round.
func (q *queue[K, T]) takeFirst(batch []*ticket[T], n int) []*ticket[T] {
	key := q.ring[0]
	line := q.lines[key]
	n = min(n, len(line))
	batch = append(batch, line[:n]...)
	q.ring = q.ring[1:]
	q.waiting -= n
	if n == len(line) {
		delete(q.lines, key)
		return batch
	}
	q.lines[key] = append([]*ticket[T](nil), line[n:]...)
	q.ring = append(q.ring, key)
	return batch
}
