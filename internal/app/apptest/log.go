package apptest

import (
	"bytes"
	"strings"
	"sync"
)

// Log is a log in memory. It may be read while it is written.
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

// String returns the log so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Lines returns the lines so far that contain a word, such as a level.
func (l *Log) Lines(word string) string {
	var list []string
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, word) {
			list = append(list, line)
		}
	}
	return strings.Join(list, "")
}
