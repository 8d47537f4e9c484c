package app_test

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Limits for pages that wait for their order to be paid.
const (
	pagesWaiting    = 1000
	pagesPerOrder   = 10
	pageBytesMax    = 50_000 // of the gateway's memory, each
	pagesWaitFor    = 4 * time.Second
	pageFirstLine   = "retry: "
	pageChangedLine = "event: change"
)

// A thousand waiting pages need little memory and almost no CPU, and each gets its
// order's change.
func TestWaitingPages(t *testing.T) {
	cluster := newCluster(t, "sqlite", 1)
	p := cluster.gateways[0]
	p.environ = append(p.environ, "GOGC=25") // so that garbage hardly counts
	p.start()
	var orders, streams []string
	for i := range pagesWaiting / pagesPerOrder {
		got := p.send("POST", "/payin", fmt.Sprintf(payinBody, 100, fmt.Sprint("waited for ", i)))
		if got.status != 201 {
			t.Fatal(got)
		}
		orders = append(orders, fmt.Sprint(got.body["id"]))
		streams = append(streams, fmt.Sprint(got.body["checkoutUrl"], "/events?v=", got.body["version"]))
	}
	// Serve pages once before measuring, to exclude one-time allocations.
	for range 50 {
		openStream(t, streams[0]).close()
	}
	before := memoryOf(t, p.cmd.Process.Pid)
	pages := make([]*stream, 0, pagesWaiting)
	for i := range pagesWaiting {
		pages = append(pages, openStream(t, streams[i%len(streams)]))
	}
	wait(time.Second)
	used := cpuTime(t, p.cmd.Process.Pid)
	wait(pagesWaitFor)
	used = cpuTime(t, p.cmd.Process.Pid) - used
	each := (memoryOf(t, p.cmd.Process.Pid) - before) / pagesWaiting
	t.Logf("%d pages wait: %d bytes each, %v of CPU in %v", pagesWaiting, each, used, pagesWaitFor)
	if each > pageBytesMax {
		t.Errorf("a waiting page takes %d bytes, want at most %d", each, pageBytesMax)
	}
	for i, id := range orders {
		if got := p.send("POST", "/sandbox/payin/"+id+"/pay", ""); got.status != 204 {
			t.Fatal(i, got)
		}
	}
	for _, page := range pages {
		page.until(pageChangedLine)
	}
}

// Waiting pages leave connections to the API, also if the limit of open files allows fewer
// connections than max-connections: a page that waits is never idle, so it gives way to none.
func TestWaitingPagesLeaveConnections(t *testing.T) {
	const files, connections = 160, 80
	p := newProgram(t, nil, "dev", "--data", t.TempDir(), "--max-connections-per-address", fmt.Sprint(connections))
	p.args = append([]string{"sh", "-c", fmt.Sprintf(`ulimit -n %d && exec "$@"`, files), "sh"}, p.args...)
	p.start()
	var streams []string
	for i := range connections / pagesPerOrder {
		got := p.send("POST", "/payin", fmt.Sprintf(payinBody, 100, fmt.Sprint("waited for ", i)))
		if got.status != 201 {
			t.Fatal(got)
		}
		streams = append(streams, fmt.Sprint(got.body["checkoutUrl"], "/events?v=", got.body["version"]))
	}
	for i := range 2 * connections {
		dialStream(t, streams[i%len(streams)])
	}
	for i := range 10 {
		p.client.CloseIdleConnections()
		p.client.Timeout = 10 * time.Second
		if got := p.send("POST", "/payin", fmt.Sprintf(payinBody, 100, fmt.Sprint("while pages wait ", i))); got.status != 201 {
			t.Fatal(got)
		}
	}
}

// stream is a page's connection to the gateway. It is small, because the test opens a
// thousand.
type stream struct {
	t      *testing.T
	conn   net.Conn
	reader *bufio.Reader
}

// openStream connects as a waiting page does.
func openStream(t *testing.T, address string) *stream {
	t.Helper()
	s := dialStream(t, address)
	s.until(pageFirstLine)
	return s
}

// dialStream is openStream without an answer.
func dialStream(t *testing.T, address string) *stream {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", target.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t, conn, bufio.NewReaderSize(conn, 512)}
	t.Cleanup(s.close)
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\n\r\n", target.RequestURI(), target.Host); err != nil {
		t.Fatal(err)
	}
	return s
}

// until reads lines up to one that begins with text.
func (s *stream) until(text string) {
	s.t.Helper()
	if err := s.conn.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		s.t.Fatal(err)
	}
	for {
		line, err := s.reader.ReadString('\n')
		if err != nil {
			s.t.Fatalf("page waiting for %q: %v", text, err)
		}
		if strings.HasPrefix(line, text) {
			return
		}
	}
}

func (s *stream) close() { _ = s.conn.Close() }
