package apptest

import (
	"bytes"
	"strings"
	"sync"
)

// Log keeps what is written to it. It may be read while more comes.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements [io.Writer].
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String is what was written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Lines are those written so far that hold a word, such as a level.
func (l *Log) Lines(word string) string {
	var list []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, word) {
			list = append(list, line)
		}
	}
	return strings.Join(list, "")
}
