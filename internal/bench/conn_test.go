package bench

import (
	"bufio"
	"strings"
	"testing"
	"time"
)

func TestMessage(t *testing.T) {
	text := "HTTP/1.1 201 Created\r\ncontent-length: 5\r\nX-Other:  1 \r\n\r\nhello" +
		"HTTP/1.1 204 No Content\r\n\r\n" +
		"HTTP/1.1 503 Service Unavailable\nConnection: close\nContent-Length:2\n\nno"
	r := bufio.NewReader(strings.NewReader(text))
	var m message
	for _, want := range []struct {
		status int
		body   string
		last   bool
	}{{201, "hello", false}, {204, "", false}, {503, "no", true}} {
		if err := m.read(r); err != nil {
			t.Fatal(err)
		}
		if status, err := m.status(); err != nil || status != want.status || string(m.body) != want.body || m.closes != want.last {
			t.Errorf("%d %q %v, %v; want %+v", status, m.body, m.closes, err, want)
		}
	}
	if err := m.read(r); err == nil {
		t.Error("read a message after the last one")
	}
}

func TestMessageRefuses(t *testing.T) {
	for _, text := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
		"HTTP/1.1 200 OK\r\n",
		"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", headerLineMax) + "\r\n\r\n",
	} {
		var m message
		if err := m.read(bufio.NewReaderSize(strings.NewReader(text), headerLineMax)); err == nil {
			t.Errorf("%.60q is read as %q", text, m.body)
		}
	}
	for _, first := range []string{"", "HTTP/1.1 ", "HTTP/1.0 200 OK", "HTTP/1.1 abc", "GET / HTTP/1.1"} {
		m := message{startLine: []byte(first)}
		if status, err := m.status(); err == nil {
			t.Errorf("%q has status %d", first, status)
		}
	}
}

// The name of a program may contain separators of fields.
func TestParseCPU(t *testing.T) {
	const tail = " S 1 2 3 0 -1 4194304 100 0 0 0 250 50 0 0 20 0 9 0"
	for _, name := range []string{"(porteira)", "(a b)", "(a) R 1 2)"} {
		if got := parseCPU("17 " + name + tail); got != 3*time.Second {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, text := range []string{"", "17 (porteira)", "17 (porteira) S 1 2 3 0 -1 4194304 100 0 0 0 x 50"} {
		if got := parseCPU(text); got != unknown {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Without /proc, figures are unknown rather than 0.
func TestUsage(t *testing.T) {
	u := readUsage(t.TempDir(), 1)
	if u != (usage{unknown, unknown, unknown}) || u.since(u) != u || readUsage("/proc", 0) != u {
		t.Errorf("%+v", u)
	}
	before, after := usage{time.Second, 5, 100}, usage{3 * time.Second, 7, 150}
	if d := after.since(before); d != (usage{2 * time.Second, 7, 50}) {
		t.Errorf("%+v", d)
	}
	if v := resources(u, 5); v.CPUSeconds != nil || v.PeakMemoryBytes != nil {
		t.Errorf("%+v", v)
	}
}
